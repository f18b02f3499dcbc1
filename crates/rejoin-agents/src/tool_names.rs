//! Names of tools in a set of permissions: their form, and common words for them.

use rejoin_core::{PermissionMode, Permissions};

/// Common words for tools that each agent names differently.
pub(crate) type Aliases = [(&'static str, &'static [&'static str])];

/// Splits `tool` or `tool(rule)` into tool and rule. None if the name has neither form.
pub(crate) fn parts(name: &str) -> Option<(&str, Option<&str>)> {
    let (tool, rule) = match name.split_once('(') {
        Some((tool, rest)) => (tool, Some(rest.strip_suffix(')')?)),
        None => (name, None),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*' | '.');
    let named = tool.starts_with(|c: char| c.is_ascii_alphabetic()) && tool.chars().all(plain);
    let printable = rule.is_none_or(|rule| !rule.contains(char::is_control));
    (named && printable).then_some((tool, rule))
}

pub(crate) fn no_tool(name: &str) -> String {
    format!("`{name}` is not the name of a tool")
}

/// Formats the refusal of a tool that the CLI does not have.
pub(crate) fn unknown(cli: &str, name: &str, aliases: &Aliases) -> String {
    let common: Vec<_> = aliases.iter().map(|(alias, _)| *alias).collect();
    let common = common.join(", ");
    format!("{cli} has no tool `{name}`; common names are {common}, besides its own")
}

/// Returns the CLI's own names of a tool.
pub(crate) fn own<'a>(aliases: &Aliases, name: &'a str) -> impl Iterator<Item = &'a str> {
    let alias = aliases.iter().find(|(alias, _)| *alias == name);
    let own = std::iter::once(name).filter(move |_| alias.is_none());
    let listed: &'static [&'static str] = alias.map_or(&[], |(_, tools)| tools);
    listed.iter().copied().chain(own)
}

/// Refuses a tool that is not among `readers` if the turn is read-only. A tier may name `commands`.
pub(crate) fn refuse_writers<'a>(
    permissions: &Permissions,
    mut tools: impl Iterator<Item = &'a str>,
    readers: &[&str],
    commands: &[&str],
) -> Result<(), String> {
    let read_only = permissions.mode == PermissionMode::ReadOnly;
    let fits =
        |name: &&str| readers.contains(name) || (permissions.commands && commands.contains(name));
    match tools.find(|name| read_only && !fits(name)) {
        Some(writer) => Err(format!(
            "the tool `{writer}` may write, and the turn is read-only"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
pub(crate) fn permissions(
    mode: PermissionMode,
    tools: Option<&[&str]>,
    deny: &[&str],
) -> Permissions {
    let owned = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
    Permissions {
        mode,
        tools: tools.map(owned),
        deny_tools: owned(deny),
        commands: false,
    }
}
