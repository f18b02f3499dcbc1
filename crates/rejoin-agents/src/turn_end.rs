//! Agents whose process accepts several prompts, one after the other.

/// Reads the output of such a process during one turn.
pub trait TurnEndReader {
    /// Reads a line of stdout.
    fn line(&mut self, line: &[u8]);

    /// Reads a line that rejoin writes to the process's stdin.
    fn stdin_line(&mut self, line: &[u8]);

    /// Returns the state of the turn after the lines so far.
    fn state(&self) -> TurnState;

    /// Returns the number of processes that an idle agent consists of.
    fn processes(&self) -> usize {
        1
    }
}

pub(crate) fn contains(line: &[u8], word: &[u8]) -> bool {
    line.windows(word.len()).any(|part| part == word)
}

/// State of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnState {
    /// The turn is still running.
    Running,
    /// The result was printed, but further lines of the turn will follow.
    ResultPrinted,
    /// The turn has ended. True if the process may receive the next prompt.
    Ended(bool),
}
