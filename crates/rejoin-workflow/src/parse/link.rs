//! Names of steps resolved to positions: needs, sessions, loops.

use std::collections::{BTreeMap, BTreeSet};

use super::names::check_names;
use super::session::sessions;
use super::shown;
use super::step::Draft;
use crate::graph::{ancestors, body, cycle};
use crate::mistake::{Mistakes, Place, instead};
use crate::workflow::{Input, Step, Work};

/// Returns the steps with all names resolved, or nothing if the order of the steps is not sound.
pub(super) fn link(
    mut drafts: Vec<Draft>,
    inputs: &[Input],
    mistakes: &mut Mistakes,
) -> Option<Vec<Step>> {
    let ids: BTreeMap<String, usize> = drafts
        .iter()
        .enumerate()
        .rev()
        .map(|(at, draft)| (draft.step.id.clone(), at))
        .collect();
    let origins: Vec<Option<usize>> = (drafts.iter())
        .map(|draft| {
            let origin = draft.origin.as_ref()?;
            resolve(&origin.id, origin.place, &ids, mistakes)
        })
        .collect();
    let needs: Vec<Vec<usize>> = (drafts.iter().zip(&origins))
        .map(|(draft, origin)| needs_of(draft, *origin, &ids, mistakes))
        .collect();
    if let Some(path) = cycle(&needs) {
        let name = |at: &usize| drafts.get(*at).map_or("", |draft| draft.step.id.as_str());
        let path_text = path.iter().map(name).collect::<Vec<_>>().join(" -> ");
        let place = path
            .first()
            .and_then(|at| drafts.get(*at))
            .map_or(Place::START, |draft| draft.place);
        let text = format!("the steps wait for each other: {path_text}");
        mistakes.suggest(place, text, "remove one of the needs");
        return None;
    }
    let above: Vec<BTreeSet<usize>> = (0..drafts.len())
        .map(|at| ancestors(at, |at| needs.get(at).map_or(&[][..], Vec::as_slice)))
        .collect();
    let bodies = loops(&mut drafts, &ids, &needs, &above, mistakes);
    check_names(&drafts, inputs, &above, &bodies, mistakes);
    let sessions = sessions(&drafts, &origins, mistakes);
    let mut steps = Vec::with_capacity(drafts.len());
    for ((draft, needs), session) in drafts.into_iter().zip(needs).zip(sessions) {
        let mut step = draft.step;
        step.needs = needs;
        if let Work::Agent(work) = &mut step.work {
            work.session = session;
        }
        steps.push(step);
    }
    Some(steps)
}

fn resolve(
    id: &str,
    place: Place,
    ids: &BTreeMap<String, usize>,
    mistakes: &mut Mistakes,
) -> Option<usize> {
    let found = ids.get(id).copied();
    if found.is_none() {
        let known: Vec<&str> = ids.keys().map(String::as_str).collect();
        mistakes.suggest(
            place,
            format!("unknown step `{}`", shown(id)),
            instead(id, &known),
        );
    }
    found
}

/// Returns all steps that the step waits for, in file order, each once.
fn needs_of(
    draft: &Draft,
    origin: Option<usize>,
    ids: &BTreeMap<String, usize>,
    mistakes: &mut Mistakes,
) -> Vec<usize> {
    let mut needs: BTreeSet<usize> = BTreeSet::new();
    for (id, place) in &draft.needs {
        if let Some(at) = resolve(id, *place, ids, mistakes)
            && !needs.insert(at)
        {
            mistakes.suggest(
                *place,
                format!("`needs` names `{id}` twice"),
                "remove one of them",
            );
        }
    }
    needs.extend(origin);
    needs.into_iter().collect()
}

/// Resolves the loops and returns the steps of each.
fn loops(
    drafts: &mut [Draft],
    ids: &BTreeMap<String, usize>,
    needs: &[Vec<usize>],
    above: &[BTreeSet<usize>],
    mistakes: &mut Mistakes,
) -> Vec<BTreeSet<usize>> {
    let mut bodies: Vec<(usize, BTreeSet<usize>)> = Vec::new();
    for (at, draft) in drafts.iter_mut().enumerate() {
        let Some((id, place)) = draft.back_to.clone() else {
            continue;
        };
        let Some(first) = resolve(&id, place, ids, mistakes) else {
            continue;
        };
        if first != at && !above.get(at).is_some_and(|above| above.contains(&first)) {
            let text = format!(
                "`back_to` must name `{}` or a step before it",
                draft.step.id
            );
            mistakes.suggest(place, text, format!("add `needs: [{id}]`"));
            continue;
        }
        if let Some(repeat) = &mut draft.step.repeat {
            repeat.back_to = first;
        }
        bodies.push((
            at,
            body(first, at, |at| needs.get(at).map_or(&[][..], Vec::as_slice)),
        ));
    }
    for (position, (at, body)) in bodies.iter().enumerate() {
        for (other_at, other) in bodies.iter().take(position) {
            let apart = body.is_disjoint(other);
            let nested = body.is_subset(other) || other.is_subset(body);
            if apart || (nested && body != other) {
                continue;
            }
            let name = |at: usize| drafts.get(at).map_or("", |draft| draft.step.id.as_str());
            let text = format!(
                "the loops of `{}` and `{}` overlap",
                name(*other_at),
                name(*at)
            );
            let place = drafts
                .get(*at)
                .and_then(|draft| draft.loop_place)
                .unwrap_or(Place::START);
            mistakes.suggest(place, text, "nest one loop in the other, or separate them");
        }
    }
    bodies.into_iter().map(|(_, body)| body).collect()
}
