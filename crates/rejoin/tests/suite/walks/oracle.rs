//! What should be: conversations as lists of what was said, and what takes each change back.

use rejoin_testkit::words_in;

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told {
    /// The agent that said it; none: the user.
    pub(super) agent: Option<String>,
    pub(super) text: String,
    /// Copies of one message have one root.
    pub(super) root: usize,
}

#[derive(Debug, Clone)]
pub(super) enum Undo {
    Edit {
        at: usize,
        text: String,
    },
    Cut {
        from: usize,
        removed: Vec<Told>,
    },
    Merge {
        from: usize,
        of_from: Vec<Told>,
        of_into: Vec<Told>,
    },
}

/// A conversation.
#[derive(Debug, Clone, Default)]
pub(super) struct Talk {
    pub(super) id: String,
    pub(super) told: Vec<Told>,
    pub(super) undo: Vec<Undo>,
    /// Said by hand in an agent's session, and not taken in yet.
    pub(super) pending: Vec<Told>,
    /// A message whose sender died, the agent it was for, and its word.
    pub(super) queued: Option<(Told, String, usize)>,
    /// It was merged into another.
    pub(super) gone: bool,
}

impl Talk {
    /// What `agent` is to be shown.
    pub(super) fn seen_by(&self, scope: &str, agent: &str) -> Vec<String> {
        let foreign = |told: &Told| told.agent.as_ref().is_some_and(|by| by != agent);
        let cut = match scope {
            "agent" => self.told.iter().rposition(foreign).map_or(0, |at| at + 1),
            _ => 0,
        };
        let seen = self.told[cut..].iter();
        seen.flat_map(|told| words_in(&told.text)).collect()
    }

    pub(super) fn cut(&mut self, from: usize) -> Vec<Told> {
        self.told.split_off(from)
    }

    pub(super) fn take_in(&mut self) {
        self.told.append(&mut self.pending);
    }

    pub(super) fn shares_with(&self, other: &Self) -> bool {
        let has = |root| other.told.iter().any(|told| told.root == root);
        self.told.iter().any(|told| has(told.root))
    }
}

/// Numbers that are the same for the same seed.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides.max(1) as u64) as usize
    }
}
