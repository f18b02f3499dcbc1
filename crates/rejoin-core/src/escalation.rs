//! The request of an agent for a higher tier: the fenced block that ends its final message.

use serde::Deserialize;

/// Longest reason that is stored, in characters.
const REASON: usize = 1_000;

/// Request for a higher tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClimbRequest {
    /// `None`: the next tier.
    pub to: Option<String>,
    pub reason: String,
    /// Services that are affected.
    pub services: Vec<String>,
}

#[derive(Deserialize)]
struct Block {
    escalate: Body,
}

#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    to: Option<String>,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    services: Vec<String>,
}

/// Returns the request at the end of a message, and the offset at which its block begins. A block
/// counts only if nothing follows it, and if no other block or quotation contains it.
pub fn climb_request(message: &str) -> Option<(ClimbRequest, usize)> {
    let (start, body) = last_block(message)?;
    let block: Block = serde_json::from_str(body.trim()).ok()?;
    let Body {
        to,
        reason,
        services,
    } = block.escalate;
    let request = ClimbRequest {
        to: to.filter(|name| !name.trim().is_empty()),
        reason: reason.unwrap_or_default().chars().take(REASON).collect(),
        services,
    };
    Some((request, start))
}

/// A fence that is open: its offset, its character and length, and its body's offset if it is ours.
struct Fence {
    start: usize,
    mark: char,
    length: usize,
    body: Option<usize>,
}

/// Returns the offset and the body of the fenced block `rejoin` that ends the message.
fn last_block(message: &str) -> Option<(usize, &str)> {
    let mut open: Option<Fence> = None;
    let mut last = None;
    let mut at = 0;
    for line in message.split_inclusive('\n') {
        let (start, next) = (at, at + line.len());
        at = next;
        let text = line.trim_end();
        let Some((mark, length, info)) = fence(text) else {
            if open.is_none() && !text.is_empty() {
                last = None;
            }
            continue;
        };
        match open.take() {
            None => {
                let ours = info == "rejoin";
                last = None;
                open = Some(Fence {
                    start,
                    mark,
                    length,
                    body: ours.then_some(next),
                });
            }
            Some(fence) if fence.mark == mark && length >= fence.length && info.is_empty() => {
                last = fence.body.map(|body| (fence.start, &message[body..start]));
            }
            Some(fence) => open = Some(fence),
        }
    }
    last.filter(|_| open.is_none())
}

/// Splits a line that opens or closes a fenced block: character, length, and the text after it.
fn fence(line: &str) -> Option<(char, usize, &str)> {
    let text = line.trim_start_matches(' ');
    if line.len() - text.len() > 3 {
        return None;
    }
    let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let rest = text.trim_start_matches(mark);
    let length = text.len() - rest.len();
    (length >= 3).then(|| (mark, length, rest.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: &str = "```rejoin\n{\"escalate\": {\"to\": \"fix\", \"reason\": \"db is down\", \"services\": [\"db\"]}}\n```";

    /// The tier asked for; `next` if the request names none.
    fn to(message: &str) -> Option<String> {
        let (request, _) = climb_request(message)?;
        Some(request.to.unwrap_or_else(|| "next".into()))
    }

    fn each_line(before: &str) -> String {
        let lines: Vec<String> = BLOCK
            .lines()
            .map(|line| format!("{before}{line}"))
            .collect();
        lines.join("\n")
    }

    #[test]
    fn the_block_that_ends_the_message_asks() {
        let message = format!("The db is down.\n\n{BLOCK}\n");
        let (request, start) = climb_request(&message).unwrap();
        assert_eq!(request.to.as_deref(), Some("fix"));
        assert_eq!(request.reason, "db is down");
        assert_eq!(request.services, ["db"]);
        assert_eq!(&message[..start], "The db is down.\n\n");
        assert_eq!(
            to("```rejoin\n{\"escalate\": {}}\n```"),
            Some("next".into())
        );
        let two = format!("{BLOCK}\n```rejoin\n{{\"escalate\": {{\"to\": \"b\"}}}}\n```");
        assert_eq!(to(&two), Some("b".into()));
    }

    #[test]
    fn quoted_nested_open_and_earlier_blocks_do_not() {
        let quoted = each_line("> ");
        let indented = each_line("    ");
        for message in [
            format!("{BLOCK}\nIs that what the log says?"),
            format!("````\n{BLOCK}\n````"),
            format!("````text\n{BLOCK}"),
            format!("~~~\n{BLOCK}\n~~~"),
            quoted,
            indented,
            format!("- {}", BLOCK.replace('\n', "\n  ")),
            format!("{BLOCK}\n```\nother\n```"),
            "```rejoin\n{\"escalate\": {\"to\": \"fix\"}}\n".into(),
            "```json\n{\"escalate\": {\"to\": \"fix\"}}\n```".into(),
            "```rejoin\n{\"escalate\": \"fix\"}\n```".into(),
            "```rejoin\nnot json\n```".into(),
            "{\"escalate\": {\"to\": \"fix\"}}".into(),
            String::new(),
        ] {
            assert_eq!(to(&message), None, "{message}");
        }
    }
}
