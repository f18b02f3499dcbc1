//! A request in terms that all dialects share: the messages, and the wanted form of the answer.

/// Parts of a request body that a dialect reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Conversation {
    pub(crate) model: String,
    pub(crate) delivery: Wanted,
    pub(crate) messages: Vec<Message>,
    /// Answer for a request that the CLI makes for itself (a title, a choice of model). It repeats
    /// the user's text, but no script is meant for it.
    pub(crate) aside: Option<String>,
}

/// Wanted form of the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Wanted {
    #[default]
    Whole,
    Streamed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) role: Role,
    /// Text blocks as sent.
    pub(crate) texts: Vec<String>,
    /// True if it contains more than text and tool results: a prompt may be a mere image.
    pub(crate) attachment: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    User,
    Assistant,
    /// System messages in between, and any other role of a CLI.
    Other,
}

impl Conversation {
    /// Returns the position of the newest message that a person (or a product for them) wrote.
    /// Messages with tool results and only reminders beside them come from the CLI itself.
    pub(crate) fn newest_prompt(&self) -> Option<usize> {
        self.messages.iter().rposition(|message| {
            message.role == Role::User
                && (message.attachment || !message.prompt().trim().is_empty())
        })
    }

    /// Returns the number of answers since that message.
    pub(crate) fn answers_after(&self, position: usize) -> usize {
        self.messages[position..]
            .iter()
            .filter(|message| message.role == Role::Assistant)
            .count()
    }

    /// Returns the end of the user's last message, for an answer that shows that the text arrived.
    pub(crate) fn echo(&self) -> String {
        const LENGTH: usize = 80;
        let Some(position) = self.newest_prompt() else {
            return String::new();
        };
        let words = own_words(&self.messages[position].prompt());
        let skipped = words.chars().count().saturating_sub(LENGTH);
        words
            .chars()
            .skip(skipped)
            .collect::<String>()
            .trim_start()
            .to_owned()
    }

    /// Returns the text of every user message, one per line, so that a person sees the messages
    /// sent.
    pub(crate) fn recall(&self) -> String {
        let lines = self
            .messages
            .iter()
            .filter(|message| message.role == Role::User);
        let lines = lines.map(|message| {
            message
                .prompt()
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        });
        lines
            .filter(|line| !line.is_empty())
            .collect::<Vec<_>>()
            .join("\n")
    }
}

impl Message {
    /// Returns all text blocks together, without the reminders that the CLI puts in front.
    pub(crate) fn prompt(&self) -> String {
        let blocks = self.texts.iter().map(|text| without_leading_reminder(text));
        blocks
            .filter(|text| !text.trim().is_empty() && text.trim() != CONTINUE)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// Claude Code's own text when it is resumed without a prompt. The previous prompt still counts.
const CONTINUE: &str = "Continue from where you left off.";

/// Returns the text after the last reminder of a block that begins with one. A reminder quotes
/// foreign files, which may contain the closing tag as well, hence the last and not the first.
fn without_leading_reminder(text: &str) -> &str {
    const CLOSING: &str = "</system-reminder>";
    if !text.trim_start().starts_with("<system-reminder>") {
        return text;
    }
    text.rfind(CLOSING)
        .map_or("", |at| &text[at + CLOSING.len()..])
}

/// Returns the prompt without additions by a product or a CLI.
pub(crate) fn own_words(prompt: &str) -> String {
    let words = without_elements(prompt, "<rejoin>", "</rejoin>");
    without_elements(&words, "<system-reminder>", "</system-reminder>")
        .trim()
        .to_owned()
}

fn without_elements(text: &str, opening: &str, closing: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, inside)) = rest.split_once(opening) {
        // An element that never closes belongs to the user, who may be writing about the tag.
        let Some((_, after)) = inside.split_once(closing) else {
            break;
        };
        kept.push_str(before);
        rest = after;
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(role: Role, texts: &[&str]) -> Message {
        Message {
            role,
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
            attachment: false,
        }
    }

    fn conversation(messages: Vec<Message>) -> Conversation {
        Conversation {
            messages,
            ..Conversation::default()
        }
    }

    #[test]
    fn the_echo_is_the_users_own_words() {
        let long = format!("start {}", "é".repeat(90));
        let table = [
            ("  hi there \n", "hi there".to_owned()),
            ("<rejoin>history</rejoin>\nhi", "hi".to_owned()),
            (
                "a <rejoin>x</rejoin>b<rejoin>y</rejoin> c",
                "a b c".to_owned(),
            ),
            ("what is <rejoin> for?", "what is <rejoin> for?".to_owned()),
            (
                "<system-reminder>a</system-reminder> b</system-reminder> hi",
                "hi".to_owned(),
            ),
            ("hi <system-reminder>a</system-reminder>", "hi".to_owned()),
            (long.as_str(), "é".repeat(80)),
        ];
        for (text, expected) in table {
            assert_eq!(
                conversation(vec![said(Role::User, &[text])]).echo(),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn tool_results_and_reminders_are_no_prompt() {
        let messages = vec![
            said(Role::User, &["first"]),
            said(Role::Assistant, &[]),
            said(
                Role::User,
                &["<system-reminder>be nice</system-reminder>\n"],
            ),
            said(Role::Other, &["system text"]),
            said(Role::User, &[]),
        ];
        let conversation = conversation(messages);
        assert_eq!(conversation.newest_prompt(), Some(0));
        assert_eq!(conversation.answers_after(0), 1);
        assert_eq!(conversation.recall(), "first");
    }

    #[test]
    fn what_the_cli_says_in_nobodys_name_is_no_prompt() {
        let messages = vec![
            said(Role::User, &["first"]),
            said(Role::Assistant, &["a question"]),
            said(Role::User, &["Continue from where you left off."]),
        ];
        let conversation = conversation(messages);
        assert_eq!(conversation.newest_prompt(), Some(0));
        assert_eq!(conversation.answers_after(0), 1);
    }

    #[test]
    fn recall_has_one_line_per_message() {
        let messages = vec![
            said(
                Role::User,
                &[
                    "<system-reminder>x</system-reminder>",
                    "one\n  more",
                    "block",
                ],
            ),
            said(Role::Assistant, &["no"]),
            said(Role::User, &["two"]),
        ];
        assert_eq!(conversation(messages).recall(), "one more block\ntwo");
    }
}
