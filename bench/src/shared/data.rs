//! The file of points: benchmarks append to it, and `bench-scale plots` reads it.
//!
//! A line has a plot, a line of that plot, x and y, separated by tabs. The reader rejects a file
//! that is larger than any run writes, unknown plots, more lines than can be distinguished, and
//! invalid numbers.

mod plot;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use chart::{LABEL_CHARS_MAX, LINES_MAX};
use clap::ValueEnum as _;

pub use self::plot::Plot;

/// Largest file. A soak of a day writes about 6000 points of about 60 bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The lines of a plot, in the order of their first points.
pub type Lines = Vec<Line>;

/// A line of a plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its label in the legend.
    pub label: String,
    /// Its points, from left to right, at most one per x.
    pub points: Vec<(f64, f64)>,
}

/// The file for a benchmark's points, if there is one.
#[derive(Debug)]
pub struct Data(Option<File>);

impl Data {
    /// Opens the file for appending. Without a path, points are dropped.
    ///
    /// # Errors
    /// Fails if the file can't be opened.
    pub fn open(path: Option<&Path>) -> Result<Self> {
        let open = |path: &Path| {
            let file = File::options().create(true).append(true).open(path);
            file.with_context(|| format!("no points can be written to {}", path.display()))
        };
        path.map(open).transpose().map(Self)
    }

    /// Writes a point of a line of a plot. Ignores a ratio to zero, which is not a number.
    ///
    /// # Errors
    /// Fails if the file can't be written.
    pub fn point(&mut self, plot: Plot, label: &str, x: f64, y: f64) -> Result<()> {
        if let Some(file) = &mut self.0
            && x.is_finite()
            && y.is_finite()
        {
            // In one write, so that a killed benchmark leaves no incomplete line.
            let line = format!("{}\t{label}\t{x}\t{y}\n", plot.name());
            file.write_all(line.as_bytes())?;
        }
        Ok(())
    }
}

/// Reads the points of all plots. If a line has two points at one x, the later one counts, because
/// its benchmark ran again.
///
/// # Errors
/// Fails if the file can't be read, is too large, or has a bad line, whose number is reported.
pub fn read(path: &Path) -> Result<BTreeMap<Plot, Lines>> {
    let name = path.display();
    let mut text = String::new();
    let file = File::open(path).with_context(|| name.to_string())?;
    file.take(FILE_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .with_context(|| name.to_string())?;
    ensure!(
        u64::try_from(text.len())? <= FILE_BYTES_MAX,
        "{name}: larger than {FILE_BYTES_MAX} bytes"
    );
    let mut plots = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        take(&mut plots, line).with_context(|| format!("{name}:{number}"))?;
    }
    Ok(plots)
}

/// Parses one line of the file.
fn take(plots: &mut BTreeMap<Plot, Lines>, line: &str) -> Result<()> {
    let fields: Vec<&str> = line.split('\t').collect();
    let &[plot, label, x, y] = fields.as_slice() else {
        bail!("{} fields instead of plot, line, x and y", fields.len());
    };
    let Ok(plot) = Plot::from_str(plot, false) else {
        bail!("there is no plot {plot:?}");
    };
    let letters = label.chars().count();
    ensure!(
        (1..=LABEL_CHARS_MAX).contains(&letters) && !label.contains(char::is_control),
        "a line is called by 1 to {LABEL_CHARS_MAX} letters"
    );
    let (x, y) = (coordinate(x)?, coordinate(y)?);
    let lines = plots.entry(plot).or_default();
    let at = lines.iter().position(|line| line.label == label);
    let at = at.unwrap_or(lines.len());
    if at == lines.len() {
        ensure!(at < LINES_MAX, "more than {LINES_MAX} lines of one plot");
        lines.push(Line {
            label: label.to_owned(),
            points: Vec::new(),
        });
    }
    if let Some(line) = lines.get_mut(at) {
        line.put(x, y);
    }
    Ok(())
}

fn coordinate(text: &str) -> Result<f64> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        Ok(_) | Err(_) => bail!("{text:?} is no number"),
    }
}

impl Line {
    fn put(&mut self, x: f64, y: f64) {
        let at = self.points.partition_point(|(other, _)| *other < x);
        match self.points.get_mut(at) {
            Some(point) if point.0 <= x => point.1 = y,
            Some(_) | None => self.points.insert(at, (x, y)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: impl AsRef<[u8]>) -> Result<BTreeMap<Plot, Lines>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.tsv");
        std::fs::write(&path, text).unwrap();
        read(&path)
    }

    #[test]
    fn what_is_written_is_read_and_stays_behind_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.tsv");
        for (x, y) in [(10.0, 0.5), (2.0, 3.25)] {
            let mut data = Data::open(Some(&path)).unwrap();
            data.point(Plot::PathRate, "whole", x, y).unwrap();
            data.point(Plot::PathRate, "whole", x, y / 0.0).unwrap();
        }
        let plots = read(&path).unwrap();
        let line = Line {
            label: "whole".to_owned(),
            points: vec![(2.0, 3.25), (10.0, 0.5)],
        };
        assert_eq!(plots, BTreeMap::from([(Plot::PathRate, vec![line])]));
        let mut nowhere = Data::open(None).unwrap();
        nowhere.point(Plot::PathRate, "whole", 1.0, 1.0).unwrap();
        assert!(Data::open(Some(folder.path())).is_err());
    }

    #[test]
    fn of_two_points_at_one_place_the_later_one_counts() {
        let plots = read_text("path-rate\ta\t1\t5\npath-rate\ta\t2\t6\npath-rate\ta\t1\t7\n");
        let points = plots.unwrap()[&Plot::PathRate][0].points.clone();
        assert_eq!(points, [(1.0, 7.0), (2.0, 6.0)]);
    }

    #[test]
    fn a_bad_line_is_refused_with_its_number() {
        let good = "path-rate\twhole\t1\t2\n";
        for (bad, why) in [
            ("", "1 fields"),
            ("path-rate\twhole\t1", "3 fields"),
            ("path-rate\twhole\t1\t2\t3", "5 fields"),
            ("no-such-plot\twhole\t1\t2", "no plot \"no-such-plot\""),
            ("path-rate\t\t1\t2", "letters"),
            (
                "path-rate\ta line that is called by far too much\t1\t2",
                "letters",
            ),
            ("path-rate\ta\u{1b}[0m\t1\t2", "letters"),
            ("path-rate\twhole\tone\t2", "\"one\" is no number"),
            ("path-rate\twhole\t1\tNaN", "\"NaN\" is no number"),
            ("path-rate\twhole\t1\t1e999", "\"1e999\" is no number"),
        ] {
            let error = read_text(format!("{good}{good}{bad}\n{good}")).unwrap_err();
            let told = format!("{error:#}");
            assert!(told.contains("data.tsv:3: "), "{bad:?}: {told}");
            assert!(told.contains(why), "{bad:?}: {told}");
        }
    }

    #[test]
    fn more_lines_than_colours_are_refused() {
        let lines = (0..=LINES_MAX).map(|number| format!("path-rate\t{number}\t1\t2\n"));
        let error = read_text(lines.collect::<String>()).unwrap_err();
        assert!(format!("{error:#}").contains("data.tsv:8: more than 7"));
    }

    #[test]
    fn a_file_larger_than_any_run_makes_and_one_that_is_no_text_are_refused() {
        let line = "path-rate\twhole\t1\t2\n";
        let lines = usize::try_from(FILE_BYTES_MAX).unwrap() / line.len();
        assert!(read_text(line.repeat(lines)).is_ok());
        let error = read_text(line.repeat(lines + 1)).unwrap_err();
        assert!(error.to_string().contains("data.tsv: larger"), "{error:#}");
        let error = read_text([0xff, 0xfe]).unwrap_err();
        assert!(error.to_string().contains("data.tsv"), "{error:#}");
    }
}
