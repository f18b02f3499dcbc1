//! Order of steps, and paths between them.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use crate::workflow::{Work, Workflow};

impl Workflow {
    /// Returns all steps that the step waits for, directly or through others.
    pub fn ancestors(&self, step: usize) -> BTreeSet<usize> {
        ancestors(step, |at| {
            self.steps.get(at).map_or(&[], |step| step.needs.as_slice())
        })
    }

    /// Returns all steps on a path from the loop's first step to this one, both included. Empty if
    /// the step has no loop.
    pub fn loop_body(&self, step: usize) -> BTreeSet<usize> {
        let needs = |at: usize| {
            self.steps
                .get(at)
                .map_or(&[][..], |step| step.needs.as_slice())
        };
        let repeat = self.steps.get(step).and_then(|step| step.repeat.as_ref());
        repeat.map_or_else(BTreeSet::new, |repeat| body(repeat.back_to, step, needs))
    }

    /// Returns the agent that the file sets for the step: its own, else that of the conversation it
    /// continues. Nothing: the configured agent, or not an agent step.
    pub fn agent_of(&self, step: usize) -> Option<&str> {
        let mut at = step;
        for _ in 0..self.steps.len() {
            let Work::Agent(work) = &self.steps.get(at)?.work else {
                return None;
            };
            if let Some(agent) = &work.agent {
                return Some(agent);
            }
            at = work.session.source()?;
        }
        None
    }

    /// Returns the steps in an order in which each follows its needs; file order among equals.
    pub fn order(&self) -> Vec<usize> {
        let mut open: Vec<usize> = self.steps.iter().map(|step| step.needs.len()).collect();
        let mut behind: Vec<Vec<usize>> = vec![Vec::new(); self.steps.len()];
        for (at, step) in self.steps.iter().enumerate() {
            for &need in &step.needs {
                if let Some(list) = behind.get_mut(need) {
                    list.push(at);
                }
            }
        }
        let ready = open.iter().enumerate().filter(|(_, open)| **open == 0);
        let mut ready: BinaryHeap<Reverse<usize>> = ready.map(|(at, _)| Reverse(at)).collect();
        let mut order = Vec::with_capacity(self.steps.len());
        while let Some(Reverse(at)) = ready.pop() {
            order.push(at);
            for &next in behind.get(at).into_iter().flatten() {
                if let Some(count) = open.get_mut(next) {
                    *count -= 1;
                    if *count == 0 {
                        ready.push(Reverse(next));
                    }
                }
            }
        }
        order
    }
}

/// Returns all steps that are reached through needs.
pub(crate) fn ancestors<'a>(step: usize, needs: impl Fn(usize) -> &'a [usize]) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut open = needs(step).to_vec();
    while let Some(at) = open.pop() {
        if found.insert(at) {
            open.extend_from_slice(needs(at));
        }
    }
    found
}

/// Returns the steps on a path from `first` to `last`, both included.
pub(crate) fn body<'a>(
    first: usize,
    last: usize,
    needs: impl Fn(usize) -> &'a [usize],
) -> BTreeSet<usize> {
    let mut within = ancestors(last, &needs);
    within.insert(last);
    // A step is in the body if it is the first or needs one that is.
    let mut body = BTreeSet::from([first]);
    loop {
        let more: Vec<usize> = (within.iter().copied())
            .filter(|at| !body.contains(at) && needs(*at).iter().any(|need| body.contains(need)))
            .collect();
        if more.is_empty() {
            return body;
        }
        body.extend(more);
    }
}

/// Returns one cycle as a path that ends with its first step.
pub(crate) fn cycle(needs: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut done = vec![false; needs.len()];
    for start in 0..needs.len() {
        let mut path: Vec<(usize, usize)> = vec![(start, 0)];
        while let Some((at, next)) = path.last_mut() {
            let (at, position) = (*at, *next);
            *next += 1;
            if done.get(at).copied().unwrap_or(true) {
                path.pop();
                continue;
            }
            match needs.get(at).and_then(|list| list.get(position)) {
                None => {
                    if let Some(flag) = done.get_mut(at) {
                        *flag = true;
                    }
                    path.pop();
                }
                Some(&need) if done.get(need).copied().unwrap_or(true) => {}
                Some(&need) => {
                    if let Some(from) = path.iter().position(|(step, _)| *step == need) {
                        let mut found: Vec<usize> =
                            path.iter().skip(from).map(|(step, _)| *step).collect();
                        found.push(need);
                        return Some(found);
                    }
                    path.push((need, 0));
                }
            }
        }
    }
    None
}

#[cfg(test)]
mod tests;
