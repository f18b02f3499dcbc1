//! Rows under each other: columns as wide as their widest cell, the last one takes what is left.

use super::line::Line;

/// The least the last column keeps.
const LEAST: usize = 12;

/// `fit`: the width of the screen; none where nothing may be cut.
pub(crate) fn table(rows: &[Vec<Line>], fit: Option<usize>) -> Vec<Line> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let wide: Vec<usize> = (0..columns)
        .map(|n| {
            rows.iter()
                .filter_map(|row| row.get(n))
                .map(Line::width)
                .max()
                .unwrap_or(0)
        })
        .collect();
    rows.iter().map(|row| in_columns(row, &wide, fit)).collect()
}

fn in_columns(row: &[Line], wide: &[usize], fit: Option<usize>) -> Line {
    let mut line = Line::new();
    let mut column = 0;
    for (cell, wide) in row.iter().zip(wide) {
        line = line.to(column);
        let left = fit.map_or(usize::MAX, |fit| fit.saturating_sub(column).max(LEAST));
        line = line.then(cell.clone().cut(left));
        // A column in which nothing stands takes no room.
        column += if *wide == 0 { 0 } else { wide + 2 };
    }
    line
}

/// Two lines as one, the second at the right edge; none if they do not fit beside each other.
pub(crate) fn edges(left: &Line, right: &Line, width: usize) -> Option<Line> {
    let room = width.checked_sub(left.width() + right.width())?;
    (room >= 2).then(|| left.clone().to(width - right.width()).then(right.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_the_last_is_cut() {
        let row = |cells: [&str; 3]| cells.map(Line::plain).to_vec();
        let rows = [
            row(["tmqx", "3m", "a title that is long"]),
            row(["kkkkk", "", "short"]),
        ];
        let shown = |fit| {
            table(&rows, fit)
                .iter()
                .map(|l| l.render(false))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            shown(None),
            ["tmqx   3m  a title that is long", "kkkkk      short"]
        );
        assert_eq!(
            shown(Some(24)),
            ["tmqx   3m  a title that…", "kkkkk      short"]
        );
        let edges = |width| edges(&Line::plain("left"), &Line::plain("right"), width);
        assert_eq!(
            edges(12).map(|l| l.render(false)).as_deref(),
            Some("left   right")
        );
        assert_eq!(edges(10), None);
    }
}
