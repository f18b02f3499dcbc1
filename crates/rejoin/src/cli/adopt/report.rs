//! Prints the sessions that were found, and those that were adopted.

use rejoin_core::ConversationId;
use rejoin_hub::rfc3339;
use rejoin_runner::adopt::{Adoption, AdoptionState, OutsideSession};
use serde_json::{Value, json};

use super::{AdoptArgs, Done};
use crate::app::App;
use crate::output::format::{Now, count};
use crate::output::{Line, Tone, one_line, table};

/// Words that nothing cuts are still no page.
const WORDS: usize = 200;

/// Agent, age, folder, what is known of it, its first words; a script also gets the id.
pub(super) fn row(session: &OutsideSession, now: &Now, everywhere: bool, id: bool) -> Vec<Line> {
    let used = session.head.used.or(session.head.began).map(rfc3339);
    let (state, tone) = match session.standing {
        AdoptionState::New => ("new".to_owned(), Tone::Good),
        AdoptionState::Known(_) => ("already here".into(), Tone::Faint),
        AdoptionState::Grown(_, more) => (format!("already here, +{more} new"), Tone::Busy),
    };
    let mut cells = vec![
        Line::plain(session.agent.as_str()),
        Line::faint(&now.ago(&used.unwrap_or_default())),
        Line::new().with(tone, &state),
    ];
    if id {
        cells.insert(0, Line::plain(session.head.session.as_str()));
    }
    if everywhere {
        cells.push(Line::faint(session.head.folder.as_deref().unwrap_or("-")));
    }
    cells.push(Line::plain(&one_line(&session.head.words, WORDS)));
    cells
}

pub(super) fn list(app: &App, sessions: &[OutsideSession], args: &AdoptArgs) {
    if sessions.is_empty() {
        let whose = args.agent.as_deref().unwrap_or("the agents");
        let where_else = if args.everywhere {
            ""
        } else {
            "; try: rejoin adopt --everywhere"
        };
        let text = format!("no session that {whose} made here on their own{where_else}");
        app.out.note(&text);
        return;
    }
    let now = Now::at(app.hub().clock.now());
    let rows: Vec<Vec<Line>> = sessions
        .iter()
        .map(|session| row(session, &now, args.everywhere, true))
        .collect();
    let fit = app.out.screen().then(|| app.out.width());
    app.out.lines(&table(&rows, fit));
    let known = |s: &OutsideSession| matches!(s.standing, AdoptionState::Known(_));
    app.out.note(if sessions.iter().all(known) {
        "all of them are here; try: rejoin list"
    } else {
        "nothing was adopted; try: rejoin adopt --all, or rejoin adopt SESSION"
    });
}

pub(super) fn told(app: &App, done: &[Done], failed: bool) {
    if done.is_empty() && !failed {
        app.out.note("nothing new; try: rejoin adopt --everywhere");
    }
    let lines = done.iter().flat_map(done_lines);
    let lines: Vec<Line> = if app.out.screen() {
        lines.flat_map(|line| line.wrap(app.out.width())).collect()
    } else {
        lines.collect()
    };
    app.out.lines(&lines);
    if let [one] = done
        && app.out.screen()
    {
        app.out
            .note(&format!("go on: rejoin send -c {} \"…\"", one.handle));
    }
}

fn done_lines(done: &Done) -> Vec<Line> {
    let Adoption {
        messages, copied, ..
    } = done.adoption;
    let again = !matches!(done.session.standing, AdoptionState::New);
    let what = match (again, messages) {
        (false, n) => count(n, "message"),
        (true, 0) => "nothing new".into(),
        (true, n) => format!("{} more", count(n, "message")),
    };
    let copy = if copied && !again {
        ", a copy: the original stays as it is"
    } else {
        ""
    };
    let words = one_line(&done.session.head.words, 60);
    let mut lines = vec![
        Line::new()
            .with(Tone::Name, &done.handle)
            .with(
                Tone::Plain,
                &format!("  {}  {what}{copy}  ", done.session.agent),
            )
            .with(Tone::Faint, &words),
    ];
    lines.extend(
        done.adoption
            .note
            .iter()
            .map(|note| Line::plain(&format!("  {note}"))),
    );
    lines
}

pub(super) fn session_json(session: &OutsideSession) -> Value {
    let (state, new, conversation): (_, _, Option<ConversationId>) = match session.standing {
        AdoptionState::New => ("new", None, None),
        AdoptionState::Known(c) => ("known", Some(0), Some(c)),
        AdoptionState::Grown(c, more) => ("grown", Some(more), Some(c)),
    };
    json!({
        "agent": session.agent,
        "session_id": session.head.session,
        "workdir": session.head.folder,
        "title": session.head.words,
        "started_at": session.head.began.map(rfc3339),
        "updated_at": session.head.used.map(rfc3339),
        "messages": Value::Null,
        "state": state,
        "new_messages": new,
        "conversation_id": conversation,
    })
}

pub(super) fn done_json(done: &Done) -> Value {
    let adoption = &done.adoption;
    json!({
        "conversation_id": adoption.conversation,
        "handle": done.handle,
        "agent": done.session.agent,
        "session_id": done.session.head.session,
        "messages": adoption.messages,
        "copied": adoption.copied,
        "resumable": adoption.resumable,
        "note": adoption.note,
    })
}
