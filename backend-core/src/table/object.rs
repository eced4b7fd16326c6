//! What hangs off a page: values too large to lie in it.

use triomphe::Arc;

use crate::table::collection::Collection;

/// A large value, cheap to clone.
#[derive(Clone, Debug)]
pub(super) enum Object {
    /// The bytes of a large value.
    Bytes(Arc<[u8]>),
    /// A map or a list.
    Collection(Collection),
    /// No object; the index of the next vacancy.
    Vacant(u32),
}

/// There is no further vacancy.
const NO_VACANCY: u32 = u32::MAX;

impl Object {
    /// The memory that it takes beside its place in the page.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Bytes(value) => value.len() as u64 + 8,
            Self::Collection(collection) => collection.bytes(),
            Self::Vacant(_) => 0,
        }
    }
}

/// The objects of a page, each at an index that stays.
#[derive(Clone, Debug)]
pub(super) struct Objects {
    items: Vec<Object>,
    vacancy: u32,
    bytes: u64,
}

impl Objects {
    /// None.
    pub(super) const fn new() -> Self {
        Self {
            items: Vec::new(),
            vacancy: NO_VACANCY,
            bytes: 0,
        }
    }

    /// The memory that they take.
    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        self.bytes + (self.items.capacity() * size_of::<Object>()) as u64
    }

    #[inline]
    pub(super) fn get(&self, index: u32) -> &Object {
        &self.items[index as usize]
    }

    /// Adds an object and returns its index.
    pub(super) fn add(&mut self, object: Object) -> u32 {
        self.bytes += object.bytes();
        if self.vacancy == NO_VACANCY {
            self.items.push(object);
            return (self.items.len() - 1) as u32;
        }
        let index = self.vacancy;
        let place = &mut self.items[index as usize];
        let Object::Vacant(next) = *place else {
            unreachable!("the vacancies are chained");
        };
        self.vacancy = next;
        *place = object;
        index
    }

    /// Changes an object in its place.
    pub(super) fn edit<T>(&mut self, index: u32, edit: impl FnOnce(&mut Object) -> T) -> T {
        let object = &mut self.items[index as usize];
        let before = object.bytes();
        let result = edit(object);
        self.bytes = self.bytes + object.bytes() - before;
        result
    }

    /// Takes an object out.
    pub(super) fn take(&mut self, index: u32) -> Object {
        let vacant = Object::Vacant(self.vacancy);
        let object = std::mem::replace(&mut self.items[index as usize], vacant);
        self.vacancy = index;
        self.bytes -= object.bytes();
        object
    }
}
