//! "Did you mean": the known name nearest to one that was mistyped.

use super::keys::{KEYS, join, names_in};

/// Returns the nearest of the names, and true if it is near enough to be meant.
pub(crate) fn nearest<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<(&'a str, bool)> {
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .min_by_key(|(distance, _)| *distance)
        .map(|(distance, candidate)| (candidate, distance <= (name.chars().count() / 3).max(1)))
}

/// The end of the sentence that begins "unknown key …".
pub(crate) fn hint(pattern: &str, section: &str, name: &str) -> String {
    let here = nearest(name, names_in(pattern).into_iter().filter(|n| *n != "*"));
    if let Some((near, true)) = here {
        return format!("; did you mean `{}`?", join(section, near));
    }
    // Right key, wrong section?
    let last = |key: &'static str| key.rsplit('.').next().unwrap_or(key);
    let elsewhere = nearest(name, KEYS.iter().map(|k| last(k.name)));
    if let Some((near, true)) = elsewhere
        && let Some(key) = KEYS.iter().find(|k| last(k.name) == near)
    {
        let written = key.name.replace('*', "NAME").replace("[]", "");
        return format!("; did you mean `{written}`?");
    }
    here.map_or_else(String::new, |(near, _)| {
        format!("; the nearest known key is `{}`", join(section, near))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints() {
        for (pattern, section, name, expected) in [
            (
                "resume",
                "resume",
                "context_treshold",
                "; did you mean `resume.context_threshold`?",
            ),
            ("", "", "breaker", "; did you mean `resume.breaker`?"),
            ("", "", "resumee", "; did you mean `resume`?"),
            (
                "agents.*",
                "agents.claude",
                "binary",
                "; the nearest known key is `agents.claude.bin`",
            ),
            (
                "agents.*",
                "agents.claude",
                "modle",
                "; did you mean `agents.claude.model`?",
            ),
        ] {
            assert_eq!(hint(pattern, section, name), expected, "{name}");
        }
    }
}
