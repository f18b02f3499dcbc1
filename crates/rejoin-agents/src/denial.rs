//! Texts that a model receives instead of the permission or answer it asked for, identical for all
//! CLIs.

use rejoin_core::{Choice, Given, QuestionKind};

pub(crate) const NOT_ALLOWED: &str = "This run has nobody who could allow this, so it is denied. Do not try to reach the same by other means; go on with what is allowed and say in your answer what could not be done.";
pub(crate) const NOT_ANSWERED: &str = "This run has nobody who could answer a question. Choose what seems most sensible, go on, and say in your answer what you assumed.";
pub(crate) const DENIED: &str =
    "The user does not allow this. Do not try to reach the same by other means.";
pub(crate) const UNWILLING: &str = "The user does not want to answer this. Choose what seems most sensible, go on, and say in your answer what you assumed.";

/// Returns the reason for a denial, as a text for the model. None if the call is allowed. `given`
/// is none if no person is available.
pub(crate) fn denial(kind: QuestionKind, given: Option<&Given>) -> Option<String> {
    let otherwise = match (given, kind) {
        (Some(given), _) if given.decision != Choice::Deny => return None,
        (None, QuestionKind::Approval) => NOT_ALLOWED,
        (None, QuestionKind::Question) => NOT_ANSWERED,
        (Some(_), QuestionKind::Approval) => DENIED,
        (Some(_), QuestionKind::Question) => UNWILLING,
    };
    let said = given.and_then(|given| given.message.clone());
    Some(said.unwrap_or_else(|| otherwise.to_owned()))
}
