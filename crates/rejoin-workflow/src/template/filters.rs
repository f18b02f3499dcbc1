//! Filters and tests of the language. Each works in time and space that its values bound.

use minijinja::value::Value as Item;
use minijinja::{Environment, Error, ErrorKind, filters, tests};

use super::engine::{MAX_RENDERED, json_text, too_large};

/// Names of all filters.
pub(super) const FILTERS: &[&str] = &[
    "abs",
    "bool",
    "capitalize",
    "count",
    "d",
    "default",
    "dictsort",
    "first",
    "float",
    "indent",
    "int",
    "items",
    "join",
    "last",
    "length",
    "lines",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "select",
    "selectattr",
    "sort",
    "split",
    "sum",
    "title",
    "tojson",
    "trim",
    "unique",
    "upper",
];

/// Names of all tests (`is NAME`).
pub(super) const TESTS: &[&str] = &[
    "boolean",
    "defined",
    "divisibleby",
    "endingwith",
    "eq",
    "equalto",
    "even",
    "false",
    "float",
    "ge",
    "gt",
    "in",
    "integer",
    "iterable",
    "le",
    "lt",
    "mapping",
    "ne",
    "none",
    "number",
    "odd",
    "sequence",
    "startingwith",
    "string",
    "true",
    "undefined",
];

/// Filters that `map` may apply to each item: none that makes an item larger.
pub(super) const EACH: &[&str] = &[
    "abs",
    "bool",
    "capitalize",
    "count",
    "first",
    "float",
    "int",
    "items",
    "last",
    "length",
    "lines",
    "list",
    "lower",
    "max",
    "min",
    "reverse",
    "round",
    "split",
    "title",
    "tojson",
    "trim",
    "upper",
];

/// Filters that look for values that may be absent.
pub(super) const TOLERANT: &[&str] = &[
    "d",
    "default",
    "map",
    "max",
    "min",
    "reject",
    "rejectattr",
    "select",
    "selectattr",
    "sort",
    "unique",
];

pub(super) fn add(engine: &mut Environment<'static>) {
    engine.add_filter("abs", filters::abs);
    engine.add_filter("bool", filters::bool);
    engine.add_filter("capitalize", filters::capitalize);
    engine.add_filter("count", filters::length);
    engine.add_filter("d", filters::default);
    engine.add_filter("default", filters::default);
    engine.add_filter("dictsort", filters::dictsort);
    engine.add_filter("first", filters::first);
    engine.add_filter("float", filters::float);
    engine.add_filter("indent", indent);
    engine.add_filter("int", filters::int);
    engine.add_filter("items", filters::items);
    engine.add_filter("join", join);
    engine.add_filter("last", filters::last);
    engine.add_filter("length", filters::length);
    engine.add_filter("lines", filters::lines);
    engine.add_filter("list", filters::list);
    engine.add_filter("lower", filters::lower);
    engine.add_filter("map", filters::map);
    engine.add_filter("max", filters::max);
    engine.add_filter("min", filters::min);
    engine.add_filter("reject", filters::reject);
    engine.add_filter("rejectattr", filters::rejectattr);
    engine.add_filter("replace", replace);
    engine.add_filter("reverse", filters::reverse);
    engine.add_filter("round", filters::round);
    engine.add_filter("select", filters::select);
    engine.add_filter("selectattr", filters::selectattr);
    engine.add_filter("sort", filters::sort);
    engine.add_filter("split", filters::split);
    engine.add_filter("sum", sum);
    engine.add_filter("title", filters::title);
    engine.add_filter("tojson", |value: Item| json_text(&value));
    engine.add_filter("trim", filters::trim);
    engine.add_filter("unique", filters::unique);
    engine.add_filter("upper", filters::upper);
    engine.add_test("boolean", tests::is_boolean);
    engine.add_test("defined", tests::is_defined);
    engine.add_test("divisibleby", tests::is_divisibleby);
    engine.add_test("endingwith", tests::is_endingwith);
    engine.add_test("eq", tests::is_eq);
    engine.add_test("equalto", tests::is_eq);
    engine.add_test("even", tests::is_even);
    engine.add_test("false", tests::is_false);
    engine.add_test("float", tests::is_float);
    engine.add_test("ge", tests::is_ge);
    engine.add_test("gt", tests::is_gt);
    engine.add_test("in", tests::is_in);
    engine.add_test("integer", tests::is_integer);
    engine.add_test("iterable", tests::is_iterable);
    engine.add_test("le", tests::is_le);
    engine.add_test("lt", tests::is_lt);
    engine.add_test("mapping", tests::is_mapping);
    engine.add_test("ne", tests::is_ne);
    engine.add_test("none", tests::is_none);
    engine.add_test("number", tests::is_number);
    engine.add_test("odd", tests::is_odd);
    engine.add_test("sequence", tests::is_sequence);
    engine.add_test("startingwith", tests::is_startingwith);
    engine.add_test("string", tests::is_string);
    engine.add_test("true", tests::is_true);
    engine.add_test("undefined", tests::is_undefined);
}

fn bounded(size: Option<usize>) -> Result<(), Error> {
    match size {
        Some(size) if size <= MAX_RENDERED => Ok(()),
        _ => Err(Error::new(ErrorKind::InvalidOperation, too_large())),
    }
}

/// Replaces a text; the result is at most as large as a rendered text.
fn replace(text: &str, from: &str, to: &str) -> Result<String, Error> {
    let growth = text.matches(from).count().checked_mul(to.len());
    bounded(growth.and_then(|growth| growth.checked_add(text.len())))?;
    Ok(text.replace(from, to))
}

/// Joins the items of a list; lists and mappings in it as JSON.
fn join(items: &Item, separator: Option<&str>) -> Result<String, Error> {
    let separator = separator.unwrap_or_default();
    let mut joined = String::new();
    for (position, item) in items.try_iter()?.enumerate() {
        if position > 0 {
            joined.push_str(separator);
        }
        if item.is_undefined() {
            return Err(Error::new(
                ErrorKind::UndefinedError,
                "an item of the list is not defined",
            ));
        }
        match item.as_str() {
            Some(text) => joined.push_str(text),
            None => joined.push_str(&json_text(&item)?),
        }
        bounded(Some(joined.len()))?;
    }
    Ok(joined)
}

/// Returns the sum of numbers. Null counts as 0.
fn sum(items: &Item) -> Result<Item, Error> {
    let (mut whole, mut total) = (Some(0_i64), 0.0_f64);
    for item in items.try_iter()?.filter(|item| !item.is_none()) {
        let number = f64::try_from(item.clone())
            .ok()
            .filter(|_| item.is_number());
        total += number.ok_or_else(|| {
            Error::new(ErrorKind::InvalidOperation, "`sum` takes a list of numbers")
        })?;
        let next = if item.is_integer() {
            i64::try_from(item).ok()
        } else {
            None
        };
        whole = whole
            .zip(next)
            .and_then(|(whole, next)| whole.checked_add(next));
    }
    Ok(whole.map_or_else(|| Item::from(total), Item::from))
}

/// Indents all lines but the first.
fn indent(text: &str, width: Option<usize>) -> Result<String, Error> {
    let width = width.unwrap_or(4);
    let growth = text
        .matches('\n')
        .count()
        .checked_mul(width.saturating_add(1));
    bounded(growth.and_then(|growth| growth.checked_add(text.len())))?;
    Ok(text.replace('\n', &format!("\n{}", " ".repeat(width.min(MAX_RENDERED)))))
}
