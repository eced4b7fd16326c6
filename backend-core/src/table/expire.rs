//! Removing what has expired, a little at a time.

use std::ops::ControlFlow;

use crate::descriptor::StateKind;
use crate::generation::WriteContext;
use crate::key::StateKey;
use crate::table::Table;
use crate::table::object::Object;
use crate::table::page::{Identity, PageView};
use crate::table::slot::Needle;
use crate::table::tree::Tree;

impl Table {
    /// Looks at about `entries_max` entries, and removes those whose bytes `is_expired`. The next
    /// call goes on from there; whether the end was reached.
    pub fn expire(
        &mut self,
        ctx: &WriteContext,
        entries_max: usize,
        is_expired: &dyn Fn(&[u8]) -> bool,
    ) -> bool {
        let mut left = entries_max;
        loop {
            while let Some(key) = self.expiry.keys.pop() {
                if left == 0
                    || self
                        .expire_within(&key, ctx, &mut left, is_expired)
                        .is_break()
                {
                    self.expiry.keys.push(key);
                    return false;
                }
            }
            if std::mem::take(&mut self.expiry.is_last) {
                return true;
            }
            if left == 0 {
                return false;
            }
            let (page, next) = self.root.page_at(self.expiry.place);
            let Some(page) = page else { return true };
            let (looked_at, keys) = self.candidates(page, is_expired);
            left = left.saturating_sub(looked_at.max(1));
            self.expiry.place = next.unwrap_or(0);
            self.expiry.is_last = next.is_none();
            if self.kind == StateKind::Value {
                for key in keys {
                    self.remove(&key, ctx);
                }
            } else {
                self.expiry.keys = keys;
            }
        }
    }

    /// The keys of a page whose value has expired, or all of its maps and lists; and how many
    /// entries were looked at for that.
    fn candidates(
        &self,
        page: PageView<'_>,
        is_expired: &dyn Fn(&[u8]) -> bool,
    ) -> (usize, Vec<StateKey>) {
        let is_value = self.kind == StateKind::Value;
        let mut looked_at = 0;
        let live = page.occupied().filter(|slot| slot.is_live());
        let wanted = live.filter(|slot| {
            looked_at += usize::from(is_value);
            !is_value || is_expired(page.value(slot))
        });
        let keys = wanted
            .map(|slot| {
                let Identity { key, namespace } = page.identity(slot);
                let key = StateKey::new(self.space.hasher(), key);
                let key = key.and_then(|key| {
                    if namespace.is_empty() {
                        Ok(key)
                    } else {
                        key.in_namespace(namespace)
                    }
                });
                key.expect("a key that is stored is within limits")
            })
            .collect();
        (looked_at, keys)
    }

    /// Goes on within the map or list of `key`; breaks off when `left` is used up.
    fn expire_within(
        &mut self,
        key: &StateKey,
        ctx: &WriteContext,
        left: &mut usize,
        is_expired: &dyn Fn(&[u8]) -> bool,
    ) -> ControlFlow<()> {
        let from = std::mem::take(&mut self.expiry.sub_key);
        let Some(tree) = self.tree_of(key) else {
            return ControlFlow::Continue(());
        };
        let mut doomed = Vec::new();
        let mut rest = None;
        for (sub_key, value) in tree.iter_from(&from) {
            if *left == 0 {
                rest = Some(sub_key.to_vec());
                break;
            }
            *left -= 1;
            if is_expired(value) {
                doomed.push(sub_key.to_vec());
            }
        }
        for sub_key in doomed {
            self.sub_remove(key, &sub_key, ctx);
        }
        match rest {
            None => ControlFlow::Continue(()),
            Some(sub_key) => {
                self.expiry.sub_key = sub_key;
                ControlFlow::Break(())
            }
        }
    }

    fn tree_of(&self, key: &StateKey) -> Option<&Tree> {
        let page = self.root.page(self.space.place(key.hash()))?;
        let at = page.find(&Needle::new(key))?;
        match page.object(page.slot(at)) {
            Object::Collection(collection) => Some(&collection.tree),
            _ => None,
        }
    }
}
