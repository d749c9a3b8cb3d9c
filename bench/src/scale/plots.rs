//! Draws an SVG file for each plot from the benchmarks' points (`bench/README.md`).
//!
//! It reads the file of points that the benchmarks' `--data` writes, creates files `PLOT.svg` in a
//! folder, and prints their paths. If the file has a bad line, nothing is drawn.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use bench::shared::data;
use clap::Args;

/// What is drawn, and where.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// File that benchmarks were given with `--data`
    data: PathBuf,
    /// Where the plots come; it is made when it is not there
    #[arg(long, default_value = "bench/plots")]
    folder: PathBuf,
}

pub(crate) fn draw_all(arguments: &Arguments) -> Result<()> {
    let files = draw(&arguments.data, &arguments.folder)?;
    let mut out = std::io::stdout();
    if files.is_empty() {
        let data = arguments.data.display();
        writeln!(out, "{data} has no points: there is nothing to draw.")?;
    }
    for file in files {
        writeln!(out, "{}", file.display())?;
    }
    Ok(())
}

/// Draws all plots that have points. Returns their files.
fn draw(data: &Path, folder: &Path) -> Result<Vec<PathBuf>> {
    let plots = data::read(data)?;
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let mut files = Vec::new();
    for (plot, lines) in plots {
        let file = folder.join(format!("{}.svg", plot.name()));
        let svg = plot.chart(&lines).svg()?;
        std::fs::write(&file, svg).with_context(|| file.display().to_string())?;
        files.push(file);
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(text: &str) -> (Result<Vec<PathBuf>>, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.tsv");
        std::fs::write(&path, text).unwrap();
        (draw(&path, &folder.path().join("plots")), folder)
    }

    #[test]
    fn two_plots_of_a_file_are_two_files_with_their_titles_and_lines() {
        let (files, folder) = drawn(
            "path-rate\twhole path\t1\t2.5\npath-rate\tbare client\t1\t2.6\npath-rate\twhole path\t2\t4\n\
             memory-over-rows\tafter the start\t10000\t7\nmemory-over-rows\tafter the start\t10000000\t148\n",
        );
        let files = files.unwrap();
        let names = ["path-rate.svg", "memory-over-rows.svg"];
        assert_eq!(
            files,
            names.map(|name| folder.path().join("plots").join(name))
        );
        let read = |at: usize| std::fs::read_to_string(&files[at]).unwrap();
        let (rate, memory) = (read(0), read(1));
        for text in [
            "Checks a second",
            "checks in flight",
            "whole path",
            "bare client",
        ] {
            assert!(rate.contains(&format!("\n{text}\n")), "{text}: {rate}");
        }
        let title = "Memory of a process that has the census open, MiB";
        for text in [title, "rows", "after the start", "10 000", "10 000 000"] {
            assert!(memory.contains(&format!("\n{text}\n")), "{text}: {memory}");
        }
        // One line in the plot, and one next to its name.
        let blue = |svg: &str| {
            let lines = svg.lines().filter(|line| line.starts_with("<polyline"));
            lines.filter(|line| line.contains("#0072B2")).count()
        };
        assert_eq!((blue(&rate), blue(&memory)), (2, 2));
    }

    #[test]
    fn a_file_with_a_bad_line_is_refused_and_nothing_is_drawn() {
        let (files, folder) = drawn("path-rate\twhole path\t1\t2.5\npath-rate\twhole path\t1\n");
        let error = format!("{:#}", files.unwrap_err());
        assert!(error.contains("data.tsv:2: 3 fields"), "{error}");
        assert!(!folder.path().join("plots").exists());
    }

    #[test]
    fn an_empty_file_has_no_plots() {
        let (files, _folder) = drawn("");
        assert_eq!(files.unwrap(), Vec::<PathBuf>::new());
    }
}
