use std::collections::VecDeque;

/// What a program wrote, with the middle left out where it was too much.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedOutput {
    /// The first bytes.
    pub head: Vec<u8>,
    /// The last bytes; follows `head` without a gap when nothing was dropped.
    pub tail: Vec<u8>,
    /// How many bytes there were.
    pub total: u64,
}

impl CapturedOutput {
    /// How many bytes between `head` and `tail` were dropped.
    pub fn dropped(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    /// `head` and `tail` in one piece; with [`Self::dropped`] bytes missing in between.
    pub fn bytes(&self) -> Vec<u8> {
        [self.head.as_slice(), self.tail.as_slice()].concat()
    }

    /// For output that is known to be text: lossily decoded, with a line that says so where bytes were dropped.
    pub fn text(&self) -> String {
        match self.dropped() {
            0 => String::from_utf8_lossy(&self.bytes()).into_owned(),
            dropped => format!(
                "{}\n[{dropped} bytes left out]\n{}",
                String::from_utf8_lossy(&self.head),
                String::from_utf8_lossy(&self.tail)
            ),
        }
    }
}

/// Keeps the head and the tail of a stream in bounded memory.
pub(super) struct Capture {
    head_limit: usize,
    tail_limit: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl Capture {
    pub(super) fn new(limit: usize) -> Self {
        let head_limit = limit / 2;
        Capture {
            head_limit,
            tail_limit: limit - head_limit,
            head: Vec::new(),
            tail: VecDeque::new(),
            total: 0,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = self.head_limit - self.head.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.tail_limit)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(self.tail_limit);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    pub(super) fn finish(self) -> CapturedOutput {
        CapturedOutput { head: self.head, tail: self.tail.into(), total: self.total }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keeps_the_ends_and_counts_the_rest(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..12),
            limit in 0_usize..120,
        ) {
            let whole = pieces.concat();
            let mut capture = Capture::new(limit);
            for piece in &pieces {
                capture.push(piece);
            }
            let captured = capture.finish();
            prop_assert_eq!(captured.total, whole.len() as u64);
            prop_assert!(whole.starts_with(&captured.head));
            prop_assert!(whole.ends_with(&captured.tail));
            prop_assert_eq!(captured.head.len() + captured.tail.len(), whole.len().min(limit));
            if whole.len() <= limit {
                prop_assert_eq!(captured.bytes(), whole);
                prop_assert_eq!(captured.dropped(), 0);
            }
        }
    }
}
