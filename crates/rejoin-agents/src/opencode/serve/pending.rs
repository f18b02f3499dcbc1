//! Open permission requests, and the order in which they are answered.
//!
//! A model calls several tools at once, and each may ask. The server (1.18.33) applies a "no" to
//! all requests that are open at that time, and an "always" to all of them that the rule covers. So
//! both wait until no other request is undecided.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Requests for permission that the server has not closed.
#[derive(Debug, Default)]
pub struct PendingRequests {
    asked: BTreeMap<String, Pending>,
}

/// State of a request.
#[derive(Debug, Clone, PartialEq)]
enum Pending {
    /// No decision yet.
    Undecided,
    /// A decision that waits for the other requests.
    Held(Value),
    /// The decision was sent to the server.
    Told,
}

impl PendingRequests {
    /// Adds a request that the server has opened.
    pub fn asked(&mut self, id: &str) {
        self.asked
            .entry(id.to_owned())
            .or_insert(Pending::Undecided);
    }

    /// Removes a request that the server has closed. Returns the decisions that can be sent now.
    pub fn settled(&mut self, id: &str) -> Vec<(String, Value)> {
        self.asked.remove(id);
        self.release()
    }

    /// Records a decision. Returns the decisions that can be sent now, in order.
    pub fn decided(&mut self, id: &str, body: Value) -> Vec<(String, Value)> {
        if body["reply"] == "once" {
            self.asked.insert(id.to_owned(), Pending::Told);
            let mut now = vec![(id.to_owned(), body)];
            now.extend(self.release());
            return now;
        }
        self.asked.insert(id.to_owned(), Pending::Held(body));
        self.release()
    }

    /// Returns the requests without a decision.
    pub fn undecided(&self) -> Vec<String> {
        let open = self.asked.iter();
        let open = open.filter(|(_, pending)| **pending == Pending::Undecided);
        open.map(|(id, _)| id.clone()).collect()
    }

    fn release(&mut self) -> Vec<(String, Value)> {
        if self.asked.values().any(|one| *one == Pending::Undecided) {
            return vec![];
        }
        let mut held: Vec<(String, Value)> = vec![];
        for (id, pending) in &mut self.asked {
            if let Pending::Held(body) = pending {
                held.push((id.clone(), std::mem::take(body)));
                *pending = Pending::Told;
            }
        }
        let denies = |(_, body): &(String, Value)| body["reply"] == "reject";
        let (no, mut yes): (Vec<_>, Vec<_>) = held.into_iter().partition(denies);
        if !no.is_empty() {
            // A rule for "always" must not allow another request that is denied.
            for (_, body) in &mut yes {
                *body = json!({"reply": "once"});
            }
        }
        yes.into_iter().chain(no).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn desk(ids: &[&str]) -> PendingRequests {
        let mut desk = PendingRequests::default();
        for id in ids {
            desk.asked(id);
        }
        desk
    }

    fn says(reply: &str) -> Value {
        json!({"reply": reply})
    }

    fn told(said: Vec<(String, Value)>) -> String {
        let word =
            |(id, body): (String, Value)| format!("{id} {}", body["reply"].as_str().unwrap());
        said.into_iter().map(word).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn alone_everything_is_said_at_once() {
        for reply in ["once", "always", "reject"] {
            let said = told(desk(&["a"]).decided("a", says(reply)));
            assert_eq!(said, format!("a {reply}"));
        }
    }

    #[test]
    fn a_no_waits_for_those_beside_it() {
        let mut desk = desk(&["a", "b", "c"]);
        assert_eq!(told(desk.decided("b", says("reject"))), "");
        assert_eq!(desk.undecided(), ["a", "c"]);
        assert_eq!(told(desk.decided("a", says("once"))), "a once");
        assert_eq!(told(desk.decided("c", says("once"))), "c once, b reject");
        assert_eq!(told(desk.settled("b")), "");
    }

    #[test]
    fn always_allows_nothing_that_is_denied() {
        let mut two = desk(&["a", "b"]);
        assert_eq!(told(two.decided("a", says("always"))), "");
        assert_eq!(told(two.decided("b", says("reject"))), "a once, b reject");
        let mut two = desk(&["a", "b"]);
        assert_eq!(told(two.decided("a", says("always"))), "");
        assert_eq!(told(two.decided("b", says("always"))), "a always, b always");
    }

    #[test]
    fn what_the_server_settles_is_not_waited_for() {
        let mut two = desk(&["a", "b"]);
        assert_eq!(told(two.decided("a", says("reject"))), "");
        assert_eq!(told(two.settled("b")), "a reject");
        // No decision is sent twice.
        assert_eq!(told(two.settled("zork")), "");
    }
}
