//! Trees that were parsed before.
//!
//! An entry is valid as long as the file's bytes are those that it was parsed from. They are compared, not guessed at by time and size: the search has
//! read the file anyway, and comparing is a thousand times cheaper than parsing.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use tree_sitter::Tree;

use crate::{languages::Language, limits::NODE_BYTES};

/// A file's text and its tree.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) text: Vec<u8>,
    pub(crate) tree: Tree,
}

/// Trees of the last searches, within a bound.
#[derive(Debug)]
pub(crate) struct Cache {
    entries: HashMap<PathBuf, Entry>,
    bytes: usize,
    bound: usize,
    /// Counts searches.
    now: u64,
    /// The search that found nothing older than itself to push out.
    full: Option<u64>,
}

#[derive(Debug)]
struct Entry {
    parsed: Arc<Parsed>,
    language: &'static Language,
    bytes: usize,
    used: u64,
}

impl Cache {
    pub(crate) fn new(bound: usize) -> Cache {
        Cache { entries: HashMap::new(), bytes: 0, bound, now: 0, full: None }
    }

    /// A search begins.
    pub(crate) fn tick(&mut self) {
        self.now += 1;
    }

    pub(crate) fn get(
        &mut self,
        path: &Path,
        language: &'static Language,
        text: &[u8],
    ) -> Option<Arc<Parsed>> {
        let now = self.now;
        let entry = self.entries.get_mut(path)?;
        if entry.language == language && entry.parsed.text == text {
            entry.used = now;
            return Some(Arc::clone(&entry.parsed));
        }
        None
    }

    /// Keeps a tree if there is room, or if older searches left trees that this one does not use. What this search has
    /// put in stays: a search through more than fits would else push out everything and keep nothing of use.
    pub(crate) fn put(&mut self, path: &Path, language: &'static Language, parsed: &Arc<Parsed>) {
        let bytes = parsed.text.len() + parsed.tree.root_node().descendant_count() * NODE_BYTES;
        if bytes > self.bound / 4 {
            return;
        }
        if let Some(old) = self.entries.remove(path) {
            self.bytes -= old.bytes;
        }
        if self.bytes + bytes > self.bound && self.full != Some(self.now) {
            self.make_room(bytes);
        }
        if self.bytes + bytes > self.bound {
            return;
        }
        self.bytes += bytes;
        let entry = Entry { parsed: Arc::clone(parsed), language, bytes, used: self.now };
        self.entries.insert(path.to_owned(), entry);
    }

    fn make_room(&mut self, bytes: usize) {
        let mut old: Vec<(u64, PathBuf, usize)> = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.used < self.now)
            .map(|(path, entry)| (entry.used, path.clone(), entry.bytes))
            .collect();
        if old.is_empty() {
            self.full = Some(self.now);
        }
        old.sort_unstable();
        // A quarter at once, so that this is not done for every file.
        let mut wanted = (self.bytes + bytes).saturating_sub(self.bound).max(self.bound / 4);
        for (_, path, size) in old {
            if wanted == 0 {
                break;
            }
            self.entries.remove(&path);
            self.bytes -= size;
            wanted = wanted.saturating_sub(size);
        }
    }
}

#[cfg(test)]
mod tests {
    use tree_sitter::Parser;

    use super::*;
    use crate::languages::by_id;

    fn parsed(language: &'static Language, text: &str) -> Arc<Parsed> {
        let mut parser = Parser::new();
        parser.set_language(&(language.grammar)()).unwrap();
        Arc::new(Parsed { text: text.into(), tree: parser.parse(text, None).unwrap() })
    }

    #[test]
    fn an_entry_is_for_these_bytes_and_this_language() {
        let (python, ruby) = (by_id("python").unwrap(), by_id("ruby").unwrap());
        let mut cache = Cache::new(1 << 20);
        cache.tick();
        cache.put(Path::new("a"), python, &parsed(python, "foo(1)"));
        let has = |cache: &mut Cache, language, text: &str| {
            cache.get(Path::new("a"), language, text.as_bytes()).is_some()
        };
        assert!(has(&mut cache, python, "foo(1)"));
        assert!(!has(&mut cache, python, "foo(2)"));
        assert!(!has(&mut cache, ruby, "foo(1)"));
        cache.put(Path::new("a"), python, &parsed(python, "foo(2)"));
        assert!(has(&mut cache, python, "foo(2)"));
        assert_eq!(cache.entries.len(), 1);
    }

    #[test]
    fn the_bound_holds_and_a_search_does_not_push_out_its_own() {
        let python = by_id("python").unwrap();
        let tree = parsed(python, &"foo(1)\n".repeat(20));
        let one = tree.text.len() + tree.tree.root_node().descendant_count() * NODE_BYTES;
        let mut cache = Cache::new(one * 10);
        let name = |number: usize| PathBuf::from(format!("f{number}"));
        cache.tick();
        for number in 0..25 {
            cache.put(&name(number), python, &tree);
        }
        assert_eq!((cache.entries.len(), cache.bytes), (10, one * 10));
        assert!(cache.get(&name(0), python, &tree.text).is_some());
        assert!(cache.get(&name(24), python, &tree.text).is_none());
        // The next search uses one of them; the others make room.
        cache.tick();
        assert!(cache.get(&name(3), python, &tree.text).is_some());
        for number in 25..50 {
            cache.put(&name(number), python, &tree);
        }
        assert!(cache.bytes <= one * 10);
        assert!(cache.get(&name(3), python, &tree.text).is_some());
        assert!(cache.get(&name(25), python, &tree.text).is_some());
        assert_eq!(cache.entries.values().map(|entry| entry.bytes).sum::<usize>(), cache.bytes);
        // What takes a large part of it is not kept at all.
        let mut small = Cache::new(one * 2);
        small.put(&name(0), python, &tree);
        assert_eq!(small.entries.len(), 0);
    }
}
