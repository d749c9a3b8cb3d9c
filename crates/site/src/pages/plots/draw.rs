//! Lines over days as SVG within a page.
//!
//! The drawing stretches with the page, and its text does not. The lines are in a nested `svg` with
//! a free aspect ratio; texts next to them are placed in percent. The SVG has no styles or scripts,
//! since the content security policy allows neither. The style sheet knows its classes. A script
//! reads the values for the reader's pointer from the `data-` attributes.

mod picture;

use std::fmt::Write as _;

use jiff::civil::Date;
use maud::{Markup, html};

use super::axis::{Scale, day_ticks};
use crate::history::Point;
use crate::text::grouped;
pub(super) use picture::picture;

/// Lines in one plot: the style sheet has a colour and a dash for each.
pub(crate) const LINES_MAX: usize = 3;

/// Up to this number of points, each gets a dot: a line of one point is invisible.
const DOTS_MAX: usize = 14;

/// Units of the lines' square in each direction: finer than any screen's pixels.
const UNITS: f64 = 2000.0;

/// The height of a plot; the style sheet defines the heights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Height {
    /// The only plot of its section.
    Tall,
    /// One of several next to each other.
    Small,
}

impl Height {
    fn class(self) -> &'static str {
        match self {
            Self::Tall => "plot tall",
            Self::Small => "plot small",
        }
    }

    /// Start and end of the lines, in percent of the height. The top label is above, the days are
    /// below.
    fn band(self) -> (f64, f64) {
        match self {
            Self::Tall => (9.0, 89.0),
            Self::Small => (16.0, 82.0),
        }
    }

    /// The drawing's left margin, as in the style sheet.
    fn margin_px(self) -> u32 {
        match self {
            Self::Tall => 56,
            Self::Small => 44,
        }
    }

    /// Least distance of two labels, as a part of the band: a line of text.
    fn apart(self) -> f64 {
        match self {
            Self::Tall => 0.09,
            Self::Small => 0.24,
        }
    }

    fn ticks(self) -> (usize, usize) {
        match self {
            Self::Tall => (4, 6),
            Self::Small => (2, 2),
        }
    }
}

/// Identifier and description of a plot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caption<'a> {
    /// Prefix of its elements' ids; unique in the page.
    pub(crate) id: &'a str,
    pub(crate) title: &'a str,
    /// The content, for people who can't see it.
    pub(crate) says: &'a str,
}

#[derive(Debug, Clone)]
pub(crate) struct Line<'a> {
    /// Label of a value under the reader's pointer; plain text.
    pub(crate) name: &'a str,
    pub(crate) points: Vec<Point>,
    /// The value of each day, drawn faintly behind the line.
    pub(crate) raw: Vec<Point>,
}

/// Draws the first [`LINES_MAX`] lines; draws nothing if no line has a point.
pub(crate) fn plot(caption: Caption<'_>, height: Height, lines: &[Line<'_>]) -> Markup {
    let lines = lines.get(..LINES_MAX.min(lines.len())).unwrap_or_default();
    let Some(frame) = Frame::of(height, lines) else {
        return html! {};
    };
    let (title, says) = (
        format!("{}-title", caption.id),
        format!("{}-says", caption.id),
    );
    let first = lines.iter().find(|line| !line.points.is_empty());
    html! {
        svg xmlns="http://www.w3.org/2000/svg" class=(height.class()) role="img" aria-labelledby=(format!("{title} {says}")) data-first=(frame.first) data-days=(first.map_or_else(String::new, |line| frame.offsets(line))) {
            title id=(title) { (caption.title) }
            desc id=(says) { (caption.says) }
            (frame.grid())
            (frame.lines(lines))
            (frame.dots(lines))
            (frame.labels())
            (frame.last_values(lines))
        }
    }
}

/// The first day, the number of days after it, and the value at the plot's top.
struct Frame {
    height: Height,
    first: Date,
    length: i32,
    scale: Scale,
}

impl Frame {
    fn of(height: Height, lines: &[Line<'_>]) -> Option<Self> {
        let points = || {
            lines
                .iter()
                .flat_map(|line| line.points.iter().chain(&line.raw))
        };
        let first = points().map(|point| point.day).min()?;
        let last = points().map(|point| point.day).max()?;
        let top = points().map(|point| point.value).fold(0.0_f64, f64::max);
        Some(Self {
            height,
            first,
            length: days_between(first, last),
            scale: Scale::up_to(top, height.ticks().0),
        })
    }

    /// The horizontal position, 0 to 1. A single day is in the middle.
    fn across(&self, day: Date) -> f64 {
        if self.length == 0 {
            return 0.5;
        }
        f64::from(days_between(self.first, day)) / f64::from(self.length)
    }

    /// The vertical position, 0 at the bottom to 1 at the top.
    fn up(&self, value: f64) -> f64 {
        value / self.scale.top
    }

    /// A vertical position of the lines, in percent of the whole height.
    fn percent_down(&self, up: f64) -> String {
        let (top, bottom) = self.height.band();
        percent(bottom - (bottom - top) * up)
    }

    fn grid(&self) -> Markup {
        let (top, bottom) = self.height.band();
        html! {
            @for value in self.scale.ticks() {
                @let y = self.percent_down(self.up(value));
                line class="grid" x1="0" x2="100%" y1=(y) y2=(y) {}
            }
            @for (day, _) in self.days() {
                @let x = percent(self.across(day) * 100.0);
                line class="day" x1=(x) x2=(x) y1=(percent(top)) y2=(percent(bottom)) {}
            }
        }
    }

    /// The values are left of the drawing, in its margin, so that no line crosses a number.
    fn labels(&self) -> Markup {
        let x = self.height.margin_px();
        html! {
            @for value in self.scale.ticks() {
                text class="tick" x=(format!("-{x}")) y=(self.percent_down(self.up(value))) dy="4" { (label(value)) }
            }
            @for (day, label) in self.days() {
                @let across = self.across(day);
                text class="tick" x=(percent(across * 100.0)) y="100%" dy="-4" text-anchor=(anchor(across)) { (label) }
            }
        }
    }

    /// The last value of each line at its end, moved so far apart that none covers another.
    fn last_values(&self, lines: &[Line<'_>]) -> Markup {
        html! {
            @for (up, number, value) in self.ends(lines) {
                text class=(format!("end line{number}")) x="100%" y=(self.percent_down(up)) dx="8" dy="4" { (rounded(value)) }
            }
        }
    }

    /// The vertical position of each last value, the number of its line, and the value.
    fn ends(&self, lines: &[Line<'_>]) -> Vec<(f64, usize, f64)> {
        let mut ends: Vec<_> = lines
            .iter()
            .enumerate()
            .filter_map(|(number, line)| Some((number, line.points.last()?)))
            .map(|(number, last)| (self.up(last.value), number, last.value))
            .collect();
        ends.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut above = f64::NEG_INFINITY;
        for (up, ..) in &mut ends {
            *up = up.max(above);
            above = *up + self.height.apart();
        }
        ends
    }

    fn days(&self) -> Vec<(Date, String)> {
        day_ticks(self.first, self.length, self.height.ticks().1)
    }

    fn lines(&self, lines: &[Line<'_>]) -> Markup {
        let (top, bottom) = self.height.band();
        html! {
            svg x="0" y=(percent(top)) width="100%" height=(percent(bottom - top)) viewBox=(format!("0 0 {UNITS} {UNITS}")) preserveAspectRatio="none" {
                @for (number, line) in lines.iter().enumerate() {
                    @if !line.raw.is_empty() { path class=(format!("raw line{number}")) d=(self.path(&line.raw, UNITS, UNITS)) {} }
                }
                @for (number, line) in lines.iter().enumerate() {
                    path class=(format!("line line{number}")) d=(self.path(&line.points, UNITS, UNITS)) data-name=(line.name) data-values=(values(&line.points)) {}
                }
            }
        }
    }

    fn dots(&self, lines: &[Line<'_>]) -> Markup {
        html! {
            @for (number, line) in lines.iter().enumerate() {
                @if line.points.len() <= DOTS_MAX {
                    @for point in &line.points {
                        circle class=(format!("dot line{number}")) cx=(percent(self.across(point.day) * 100.0)) cy=(self.percent_down(self.up(point.value))) r="3.5" {}
                    }
                }
            }
        }
    }

    /// A line within this width and height: where it begins, then each step from point to point.
    /// Steps are short numbers, which halves the page.
    fn path(&self, points: &[Point], width: f64, height: f64) -> String {
        let mut path = String::new();
        let (mut last_x, mut last_y) = (0.0, 0.0);
        for (number, point) in points.iter().enumerate() {
            let command = ["M", "l"].get(number).unwrap_or(&" ");
            let x = (self.across(point.day) * width).round();
            let y = ((1.0 - self.up(point.value)) * height).round();
            // Writing to a String can't fail.
            write!(path, "{command}{:.0} {:.0}", x - last_x, y - last_y).ok();
            (last_x, last_y) = (x, y);
        }
        path
    }

    fn offsets(&self, line: &Line<'_>) -> String {
        joined(
            line.points
                .iter()
                .map(|point| days_between(self.first, point.day).to_string()),
        )
    }
}

fn values(points: &[Point]) -> String {
    joined(points.iter().map(|point| {
        let text = format!("{:.1}", point.value);
        text.strip_suffix(".0").unwrap_or(&text).to_owned()
    }))
}

fn joined(words: impl Iterator<Item = String>) -> String {
    words.collect::<Vec<_>>().join(" ")
}

fn percent(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}%")
}

/// Labels at the ends stay within the drawing.
fn anchor(across: f64) -> &'static str {
    if across < 0.05 {
        "start"
    } else if across > 0.95 {
        "end"
    } else {
        "middle"
    }
}

fn label(value: f64) -> String {
    if value.fract() == 0.0 {
        return grouped(whole(value));
    }
    format!("{value}")
}

/// A value's label: a whole number, or below 10 one with a decimal.
pub(super) fn rounded(value: f64) -> String {
    let parts = if value < 10.0 { 10.0 } else { 1.0 };
    label((value * parts).round() / parts)
}

/// A number without its fraction; below 0 it is 0.
#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float becomes a whole number in no other way; it saturates"
)]
fn whole(value: f64) -> u64 {
    value as u64
}

fn days_between(first: Date, last: Date) -> i32 {
    first.until(last).map_or(0, |span| span.get_days())
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;
    use crate::pages::assets::STYLE;

    const CAPTION: Caption<'_> = Caption {
        id: "x",
        title: "<Title>",
        says: "\"Says\"",
    };

    fn line(values: &[f64]) -> Line<'static> {
        let mut day = date(2026, 1, 1);
        let points: Vec<_> = values
            .iter()
            .map(|value| {
                day = day.tomorrow().unwrap();
                Point { day, value: *value }
            })
            .collect();
        Line {
            name: "<name>",
            raw: points.clone(),
            points,
        }
    }

    fn drawn(lines: &[Line<'_>]) -> String {
        plot(CAPTION, Height::Tall, lines).into_string()
    }

    #[test]
    fn the_style_sheet_knows_every_class_that_is_drawn() {
        let lines: Vec<_> = (0..LINES_MAX).map(|_| line(&[1.0, 2.0, 7.0])).collect();
        let svg = drawn(&lines);
        let classes: std::collections::BTreeSet<_> = svg
            .split("class=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .flat_map(|classes| classes.split(' '))
            .collect();
        assert!(classes.len() >= LINES_MAX + 5, "{classes:?}");
        for class in classes {
            assert!(STYLE.contains(&format!(".{class}")), "{class}");
        }
        for height in [Height::Tall, Height::Small] {
            let margin = format!("margin-left: {}px", height.margin_px());
            assert!(STYLE.contains(&margin), "{margin}");
        }
    }

    #[test]
    fn a_plot_carries_its_text_escaped_and_neither_style_nor_script() {
        let svg = drawn(&[line(&[3.0, 0.0])]);
        assert!(svg.contains("&lt;Title&gt;") && svg.contains("&quot;Says&quot;"));
        assert!(svg.contains("data-name=\"&lt;name&gt;\"") && svg.contains("data-values=\"3 0\""));
        assert!(svg.contains(r#"aria-labelledby="x-title x-says""#));
        for never in ["style=", "<style", "<script", "href", "<Title"] {
            assert!(!svg.contains(never), "{never}: {svg}");
        }
    }

    #[test]
    fn a_single_day_is_a_dot_in_the_middle() {
        let svg = drawn(&[line(&[5.0])]);
        assert!(svg.contains(r#"cx="50%""#), "{svg}");
    }

    #[test]
    fn no_line_leaves_its_square_and_nothing_is_drawn_of_nothing() {
        for lines in [vec![], vec![line(&[])]] {
            assert_eq!(drawn(&lines), "");
        }
        for values in [&[0.0][..], &[5e9, 0.0], &[0.3, 0.1, 1.0]] {
            let svg = drawn(&[line(values)]);
            let path = svg
                .split(" d=\"")
                .nth(1)
                .unwrap()
                .split('"')
                .next()
                .unwrap();
            let numbers = path.split(['M', 'l', ' ']).skip(1);
            let steps: Vec<f64> = numbers.map(|number| number.parse().unwrap()).collect();
            let (mut x, mut y) = (0.0, 0.0);
            for step in steps.chunks(2) {
                (x, y) = (x + step[0], y + step[1]);
                for place in [x, y] {
                    assert!((0.0..=UNITS).contains(&place), "{path}");
                }
            }
        }
    }
}
