//! Columns.

use super::style::clean;

/// Rows of cells, padded to columns.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(|&cell| cell.to_owned()).collect()] }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = impl AsRef<str>>) {
        let one_line = |cell: &str| clean(cell).replace(['\n', '\t'], " ");
        self.rows.push(cells.into_iter().map(|cell| one_line(cell.as_ref())).collect());
    }

    /// The lines, the head first. Columns are as wide as their widest cell; the last is not
    /// padded.
    pub(crate) fn lines(&self) -> Vec<String> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        self.rows.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_cells_stay_on_their_line() {
        let mut table = Table::new(&["A", "NAME"]);
        table.row(["1", "über\nzwei"]);
        table.row(["200", ""]);
        assert_eq!(table.lines(), ["A    NAME", "1    über zwei", "200"]);
    }
}
