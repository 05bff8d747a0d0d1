// SPDX-License-Identifier: GPL-2.0
//! Objects by their number. Drivers give numbers out from below, within the counts that they committed, so a list
//! of places is small and a look-up is one step, however many objects there are.

use std::ops::Index;

/// Objects of one kind by number.
#[derive(Debug)]
pub(crate) struct Table<T> {
    places: Vec<Option<Box<T>>>,
    len: usize,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            places: vec![],
            len: 0,
        }
    }
}

impl<T> Table<T> {
    pub fn get(&self, id: &u32) -> Option<&T> {
        self.places.get(*id as usize)?.as_deref()
    }

    pub fn get_mut(&mut self, id: &u32) -> Option<&mut T> {
        self.places.get_mut(*id as usize)?.as_deref_mut()
    }

    pub fn contains_key(&self, id: &u32) -> bool {
        self.get(id).is_some()
    }

    /// Puts an object in the place of number `id`, which the caller has checked against a count.
    pub fn insert(&mut self, id: u32, object: T) {
        let place = id as usize;
        if place >= self.places.len() {
            self.places.resize_with(place + 1, || None);
        }
        if let Some(place) = self.places.get_mut(place) {
            self.len += usize::from(place.is_none());
            *place = Some(Box::new(object));
        }
    }

    pub fn remove(&mut self, id: &u32) -> Option<T> {
        let object = self.places.get_mut(*id as usize)?.take()?;
        self.len -= 1;
        Some(*object)
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.places.iter().flatten().map(Box::as_ref)
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.places.iter_mut().flatten().map(Box::as_mut)
    }
}

impl<T> Index<&u32> for Table<T> {
    type Output = T;

    fn index(&self, id: &u32) -> &T {
        self.get(id).expect("no such object")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_come_and_go() {
        let mut table = Table::default();
        assert!(table.is_empty());
        table.insert(5, "five");
        table.insert(2, "two");
        table.insert(5, "V");
        assert_eq!((table.len(), table.get(&5)), (2, Some(&"V")));
        assert_eq!(table.get(&3), None);
        assert_eq!(table.get(&u32::MAX), None);
        assert_eq!(table.values().copied().collect::<Vec<_>>(), ["two", "V"]);
        assert_eq!(table.remove(&5), Some("V"));
        assert_eq!(table.remove(&5), None);
        assert_eq!(table.len(), 1);
        for value in table.values_mut() {
            *value = "2";
        }
        assert_eq!(table[&2], "2");
    }
}
