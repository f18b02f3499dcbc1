//! How far something is that takes long: one line on a terminal, overwritten; else nothing.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Output;

/// Work that ends sooner needs no line.
const SOON: Duration = Duration::from_millis(400);
const EVERY: Duration = Duration::from_millis(100);
const BAR: usize = 24;

pub(crate) struct Progress {
    shown: Option<Mutex<Shown>>,
}

struct Shown {
    next: Instant,
    any: bool,
}

impl Progress {
    pub(crate) fn new(out: Output) -> Self {
        let eyes = !out.json && !out.quiet && std::io::stderr().is_terminal();
        let shown = Shown {
            next: Instant::now() + SOON,
            any: false,
        };
        Self {
            shown: eyes.then(|| Mutex::new(shown)),
        }
    }

    /// `of`: none where nobody knows how much there is.
    pub(crate) fn at(&self, what: &str, done: u64, of: Option<u64>) {
        let Some(shown) = &self.shown else { return };
        let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
        if Instant::now() < shown.next {
            return;
        }
        *shown = Shown {
            next: Instant::now() + EVERY,
            any: true,
        };
        say(&line(what, done, of));
    }
}

impl Drop for Progress {
    /// Clears the line, so that output begins on a clean one.
    fn drop(&mut self) {
        if let Some(shown) = &self.shown {
            let shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
            if shown.any {
                say("");
            }
        }
    }
}

fn say(text: &str) {
    let mut err = std::io::stderr().lock();
    let _gone = write!(err, "\r\x1b[K{text}").and_then(|()| err.flush());
}

fn line(what: &str, done: u64, of: Option<u64>) -> String {
    let Some(of) = of.filter(|of| *of > 0) else {
        return format!("{what} {done}");
    };
    let full = (done.min(of) as f64 / of as f64 * BAR as f64) as usize;
    let bar = format!("{}{}", "━".repeat(full), "╌".repeat(BAR - full));
    format!("{what} {bar} {done} of {of}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_where_the_end_is_known() {
        let bar = |full: usize| format!("{}{}", "━".repeat(full), "╌".repeat(24 - full));
        for (done, of, shown) in [
            (3, None, "reading 3".to_owned()),
            (3, Some(0), "reading 3".to_owned()),
            (0, Some(8), format!("reading {} 0 of 8", bar(0))),
            (4, Some(8), format!("reading {} 4 of 8", bar(12))),
            (9, Some(8), format!("reading {} 9 of 8", bar(24))),
        ] {
            assert_eq!(line("reading", done, of), shown);
        }
    }
}
