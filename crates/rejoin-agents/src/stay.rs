//! Agents whose process takes one prompt after the other.

/// Reads what a process prints in one turn.
pub trait StayReader {
    fn line(&mut self, line: &[u8]);

    /// What the process is told, a line of its stdin.
    fn told(&mut self, line: &[u8]);

    fn standing(&self) -> Standing;

    /// How many processes it is while it rests.
    fn processes(&self) -> usize {
        1
    }
}

pub(crate) fn contains(line: &[u8], word: &[u8]) -> bool {
    line.windows(word.len()).any(|part| part == word)
}

/// How far a turn has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Runs,
    /// Its last word is said; something that belongs to it is still to come.
    Trails,
    /// True: the process may take the next prompt.
    Over(bool),
}
