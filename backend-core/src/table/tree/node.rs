//! Nodes: leaves, and inner nodes that know the newest stamp and the counts below them.

use triomphe::Arc;

use super::leaf::{Change, Leaf};
use crate::generation::{Generation, WriteContext};

/// An inner node with more children is split.
const CHILDREN_MAX: usize = 64;

/// A node, shared with frozen trees until it is written.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Leaf(Leaf),
    Inner(Inner),
}

/// Children in order. All keys of `children[i]` are at least `bounds[i - 1]`.
#[derive(Clone, Debug, Default)]
pub(super) struct Inner {
    pub(super) children: Vec<Child>,
    bounds: Vec<Box<[u8]>>,
}

/// A child, and what is below it.
#[derive(Clone, Debug)]
pub(super) struct Child {
    pub(super) node: Arc<Node>,
    pub(super) max_stamp: u32,
    pub(super) tombstones: u64,
}

/// What a write to a child asks of its parent.
pub(super) struct Written {
    pub(super) change: Change,
    /// A new right neighbour, and the bound between the two.
    pub(super) split: Option<(Box<[u8]>, Arc<Node>)>,
}

/// One write.
pub(super) enum Write<'a> {
    Put(&'a [u8], &'a [u8]),
    Remove(&'a [u8]),
}

impl Write<'_> {
    fn key(&self) -> &[u8] {
        match self {
            Self::Put(key, _) | Self::Remove(key) => key,
        }
    }
}

/// The node to write to: a copy of its own if a frozen tree shares it.
pub(super) fn make_mut(node: &mut Arc<Node>) -> &mut Node {
    Arc::make_mut(node)
}

impl Child {
    fn new(node: Arc<Node>) -> Self {
        let (max_stamp, tombstones) = (node.max_stamp(), node.tombstones());
        Self {
            node,
            max_stamp,
            tombstones,
        }
    }
}

impl Node {
    pub(super) fn max_stamp(&self) -> u32 {
        match self {
            Self::Leaf(leaf) => leaf.max_stamp(),
            Self::Inner(inner) => inner
                .children
                .iter()
                .map(|child| child.max_stamp)
                .max()
                .unwrap_or(0),
        }
    }

    pub(super) fn tombstones(&self) -> u64 {
        match self {
            Self::Leaf(leaf) => u64::from(leaf.tombstones()),
            Self::Inner(inner) => inner.children.iter().map(|child| child.tombstones).sum(),
        }
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<&[u8]> {
        let mut node = self;
        loop {
            match node {
                Self::Leaf(leaf) => return leaf.value(leaf.find(key).ok()?),
                Self::Inner(inner) => node = &inner.children[inner.child_of(key)].node,
            }
        }
    }

    /// Writes to the subtree; `stamp` is the generation of a put.
    pub(super) fn write(
        &mut self,
        write: &Write<'_>,
        context: &WriteContext,
        edge: bool,
    ) -> Written {
        match self {
            Self::Leaf(leaf) => {
                let change = match write {
                    Write::Put(key, value) => leaf.put(key, value, context.generation),
                    Write::Remove(key) => leaf.remove(key, context),
                };
                let split = leaf.is_over_full().then(|| {
                    let appended = edge && leaf.key(leaf.len() - 1) == write.key();
                    let upper = leaf.split(appended);
                    let bound = upper.key(0).into();
                    (bound, Arc::new(Self::Leaf(upper)))
                });
                Written { change, split }
            }
            Self::Inner(inner) => inner.write(write, context, edge),
        }
    }

    /// Forgets deletions that need not be remembered, below nodes that have any.
    pub(super) fn drop_tombstones(&mut self, context: &WriteContext) -> u64 {
        match self {
            Self::Leaf(leaf) => u64::from(leaf.drop_tombstones(context)),
            Self::Inner(inner) => {
                let mut dropped = 0;
                for index in (0..inner.children.len()).rev() {
                    if inner.children[index].tombstones > 0 {
                        dropped +=
                            make_mut(&mut inner.children[index].node).drop_tombstones(context);
                        inner.refresh(index);
                        inner.tidy(index);
                    }
                }
                dropped
            }
        }
    }

    fn is_sparse(&self) -> bool {
        match self {
            Self::Leaf(leaf) => leaf.is_sparse(),
            Self::Inner(inner) => inner.children.len() < CHILDREN_MAX / 4,
        }
    }
}

impl Inner {
    /// An inner node above two nodes with `bound` between them.
    pub(super) fn above(left: Arc<Node>, bound: Box<[u8]>, right: Arc<Node>) -> Self {
        Self {
            children: vec![Child::new(left), Child::new(right)],
            bounds: vec![bound],
        }
    }

    /// The child whose keys `key` belongs to.
    pub(super) fn child_of(&self, key: &[u8]) -> usize {
        self.bounds.partition_point(|bound| &**bound <= key)
    }

    fn refresh(&mut self, index: usize) {
        let child = &mut self.children[index];
        child.max_stamp = child.node.max_stamp();
        child.tombstones = child.node.tombstones();
    }

    fn write(&mut self, write: &Write<'_>, context: &WriteContext, edge: bool) -> Written {
        let index = self.child_of(write.key());
        let edge = edge && index + 1 == self.children.len();
        let child = &mut self.children[index];
        let written = make_mut(&mut child.node).write(write, context, edge);
        let change = written.change;
        if let Some((bound, right)) = written.split {
            self.refresh(index);
            self.bounds.insert(index, bound);
            self.children.insert(index + 1, Child::new(right));
        } else {
            child.max_stamp = child.max_stamp.max(context.generation.0);
            child.tombstones = child.tombstones.saturating_add_signed(change.tombstones);
            if matches!(write, Write::Remove(_)) {
                self.tidy(index);
            }
        }
        let split = (self.children.len() > CHILDREN_MAX).then(|| self.split(edge));
        Written { change, split }
    }

    fn split(&mut self, at_right_edge: bool) -> (Box<[u8]>, Arc<Node>) {
        let count = self.children.len();
        let at = if at_right_edge { count - 2 } else { count / 2 };
        let children = self.children.split_off(at);
        let bounds = self.bounds.split_off(at);
        let bound = self
            .bounds
            .pop()
            .expect("there is a bound left of every child but the first");
        (bound, Arc::new(Node::Inner(Self { children, bounds })))
    }

    /// Merges the child at `index` with a neighbour if it is nearly empty.
    fn tidy(&mut self, index: usize) {
        if self.children.len() < 2 || !self.children[index].node.is_sparse() {
            return;
        }
        let sparse_at = |at: usize| self.children.get(at).is_some_and(|c| c.node.is_sparse());
        let left = match index.checked_sub(1) {
            Some(before) if sparse_at(before) => before,
            _ if sparse_at(index + 1) => index,
            _ => return self.drop_if_empty(index),
        };
        let right = self.children.remove(left + 1);
        let bound = self.bounds.remove(left);
        match (make_mut(&mut self.children[left].node), &*right.node) {
            (Node::Leaf(leaf), Node::Leaf(next)) => leaf.absorb(next),
            (Node::Inner(inner), Node::Inner(next)) => {
                inner.bounds.push(bound);
                inner.bounds.extend(next.bounds.iter().cloned());
                inner.children.extend(next.children.iter().cloned());
            }
            _ => unreachable!("all leaves are at one depth"),
        }
        self.refresh(left);
    }

    fn drop_if_empty(&mut self, index: usize) {
        if let Node::Leaf(leaf) = &*self.children[index].node
            && leaf.len() == 0
        {
            self.children.remove(index);
            self.bounds.remove(index.saturating_sub(1));
        }
    }
}

/// Walks live entries and remembered deletions in order, below nodes newer than a stamp.
pub(super) struct Walk<'a> {
    /// Inner nodes with the next child, then a leaf with the next entry.
    stack: Vec<(&'a Node, usize)>,
    newer_than: Option<Generation>,
}

impl<'a> Walk<'a> {
    /// Starts at the first key that is at least `start`.
    pub(super) fn new(root: &'a Node, start: &[u8], newer_than: Option<Generation>) -> Self {
        let mut stack = Vec::new();
        let mut node = root;
        loop {
            match node {
                Node::Leaf(leaf) => {
                    let (Ok(index) | Err(index)) = leaf.find(start);
                    stack.push((node, index));
                    return Self { stack, newer_than };
                }
                Node::Inner(inner) => {
                    let index = inner.child_of(start);
                    stack.push((node, index + 1));
                    node = &inner.children[index].node;
                }
            }
        }
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (node, next) = self.stack.last_mut()?;
            let index = *next;
            *next += 1;
            match *node {
                Node::Leaf(leaf) if index < leaf.len() => {
                    if self
                        .newer_than
                        .is_none_or(|stamp| leaf.stamp(index) > stamp)
                    {
                        return Some((leaf.key(index), leaf.value(index)));
                    }
                }
                Node::Inner(inner) if index < inner.children.len() => {
                    let child = &inner.children[index];
                    if self
                        .newer_than
                        .is_none_or(|stamp| child.max_stamp > stamp.0)
                    {
                        self.stack.push((&child.node, 0));
                    }
                }
                _ => {
                    self.stack.pop();
                }
            }
        }
    }
}
