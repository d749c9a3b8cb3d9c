//! Line charts as SVG, for the results of benchmarks and simulations.
//!
//! Takes a title, labels and points, and gives the text of an SVG file. Its background is white, so
//! that it is readable on a dark page as well. Values that are not finite are left out; a chart
//! without points shows only its axes.

mod axis;

use anyhow::Result;
use plotters::coord::Shift;
use plotters::prelude::{
    ChartBuilder, Color as _, DashedLineSeries, DrawingArea, IntoDrawingArea as _, IntoFont as _,
    LineSeries, PathElement, RGBColor, Ranged as _, SVGBackend, ShapeStyle, Text, WHITE,
};

use crate::axis::Axis;
pub use crate::axis::Values;

/// Width and height in pixels, which fit next to text on an ordinary screen.
const SIZE: (i32, i32) = (920, 420);

/// Width in pixels of the legend, which is on the right, so that it never covers the lines.
const LEGEND_WIDTH: i32 = 240;

/// Distance between two lines of the legend in pixels.
const LEGEND_STEP: i32 = 24;

/// Length of a line in the legend in pixels.
const LEGEND_LINE: i32 = 22;

/// Most characters of a label that fit into the legend.
pub const LABEL_CHARS_MAX: usize = 30;

/// Most points of a line that also get dots.
const DOTS_MAX: usize = 40;

/// Most lines of a chart, one for each colour.
pub const LINES_MAX: usize = 7;

/// The palette of Okabe and Ito, which people with red-green colour blindness can tell apart.
/// Yellow is left out, because it is too faint on white.
const COLOURS: [RGBColor; LINES_MAX] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];

/// Colour of the target line.
const TARGET_COLOUR: RGBColor = RGBColor(110, 110, 110);

/// Colour of the grid lines.
const GRID_COLOUR: RGBColor = RGBColor(222, 222, 222);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A line of the chart.
#[derive(Debug, Clone)]
pub struct Line<'a> {
    /// Its label in the legend.
    pub label: &'a str,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
}

/// A chart.
#[derive(Debug, Clone)]
pub struct Chart<'a> {
    /// What the values are, with their unit.
    pub title: &'a str,
    /// The label of the horizontal axis, with its unit. The axis is logarithmic if it spans more
    /// than two decades.
    pub across: &'a str,
    /// How values are drawn.
    pub values: Values,
    /// Label and value of a target that the values should reach or stay below.
    pub target: Option<(&'a str, f64)>,
    /// The lines, at most [`LINES_MAX`]: more would share colours.
    pub lines: Vec<Line<'a>>,
}

impl Chart<'_> {
    /// The chart as an SVG file.
    ///
    /// # Errors
    /// When drawing fails, which writing to a string never does.
    pub fn svg(&self) -> Result<String> {
        let mut svg = String::new();
        {
            let size = (SIZE.0.unsigned_abs(), SIZE.1.unsigned_abs());
            let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
            area.fill(&WHITE)?;
            let below = area.titled(self.title, ("sans-serif", 22))?;
            let (left, right) = below.split_horizontally(SIZE.0 - LEGEND_WIDTH);
            self.draw(&left)?;
            self.name_lines(&right)?;
            area.present()?;
        }
        Ok(svg)
    }

    fn draw(&self, area: &Area<'_>) -> Result<()> {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let across = Axis::of_places(points().map(|(place, _)| *place));
        let target = self.target.map(|(_, value)| value);
        let values = points().map(|(_, value)| *value).chain(target);
        let up = Axis::of_values(values, self.values);
        let mut chart = ChartBuilder::on(area)
            .margin(10)
            .x_label_area_size(44)
            .y_label_area_size(76)
            .build_cartesian_2d(across.clone(), up.clone())?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .bold_line_style(GRID_COLOUR)
            .x_desc(self.across)
            .label_style(("sans-serif", 16))
            .draw()?;
        if let Some(value) = target {
            let ends = [across.range().start, across.range().end];
            let ends = ends.map(|place| (place, value));
            let style = TARGET_COLOUR.stroke_width(1);
            chart.draw_series(DashedLineSeries::new(ends, 6, 4, style))?;
        }
        for (line, style) in self.lines.iter().zip(styles()) {
            let shown = |point: &&(f64, f64)| across.shows(point.0) && up.shows(point.1);
            let points: Vec<_> = line.points.iter().filter(shown).copied().collect();
            let dot = if points.len() > DOTS_MAX { 0 } else { 3 };
            chart.draw_series(LineSeries::new(points, style).point_size(dot))?;
        }
        Ok(())
    }

    fn name_lines(&self, area: &Area<'_>) -> Result<()> {
        let lines = self.lines.iter().map(|line| line.label).zip(styles());
        let target = self.target.map(|(label, _)| label);
        let target = target.map(|label| (label, TARGET_COLOUR.stroke_width(1)));
        let mut y = LEGEND_STEP;
        for (label, style) in lines.chain(target) {
            area.draw(&PathElement::new([(0, y), (LEGEND_LINE, y)], style))?;
            let font = ("sans-serif", 16).into_font();
            area.draw(&Text::new(label.to_owned(), (LEGEND_LINE + 6, y - 7), font))?;
            y += LEGEND_STEP;
        }
        Ok(())
    }
}

/// The style of each line, with filled dots.
fn styles() -> impl Iterator<Item = ShapeStyle> {
    COLOURS
        .iter()
        .map(|colour| colour.filled().stroke_width(2))
        .cycle()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: &[(f64, f64)]) -> Chart<'static> {
        let line = |label| Line {
            label,
            points: points.to_vec(),
        };
        Chart {
            title: "Checks a second",
            across: "in flight",
            values: Values::FromZero,
            target: Some(("target", 0.9)),
            lines: vec![line("whole"), line("bare")],
        }
    }

    #[test]
    fn title_axis_lines_and_target_are_named_and_drawn() {
        let svg = chart(&[(1.0, 2.0), (2.0, 3.0)]).svg().unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        for text in ["Checks a second", "in flight", "whole", "bare", "target"] {
            assert!(svg.contains(&format!("\n{text}\n")), "{text}: {svg}");
        }
        for colour in ["#0072B2", "#D55E00"] {
            let lines = svg.lines().filter(|line| line.contains(colour));
            let lines: Vec<_> = lines.collect();
            // The line and its legend entry; its two dots.
            let count = |tag: &str| lines.iter().filter(|line| line.starts_with(tag)).count();
            assert_eq!((count("<polyline"), count("<circle")), (2, 2), "{svg}");
        }
    }

    #[test]
    fn nothing_that_is_drawn_is_a_panic() {
        for points in [
            &[][..],
            &[(1.0, 1.0)],
            &[(0.0, 0.0), (0.0, 0.0)],
            &[(f64::NAN, 1.0), (1.0, f64::INFINITY), (1e300, -1e300)],
        ] {
            for values in [Values::FromZero, Values::Closely] {
                let chart = Chart {
                    values,
                    ..chart(points)
                };
                let svg = chart.svg().unwrap();
                assert!(!svg.contains("NaN"), "{points:?}: {svg}");
            }
        }
    }

    #[test]
    fn what_lines_are_called_is_no_markup() {
        let chart = Chart {
            title: "a < b & c",
            ..chart(&[])
        };
        let svg = chart.svg().unwrap();
        assert!(svg.contains("a &lt; b &amp; c"), "{svg}");
    }
}
