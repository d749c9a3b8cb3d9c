//! A plot as an SVG file for other pages and for print, with its title, source and colours.
//!
//! It has attributes only: the content security policy allows files neither styles nor scripts.

use maud::html;

use super::{DOTS_MAX, Frame, Height, LINES_MAX, Line, anchor, label, rounded};

/// The area of the lines. All units are half pixels, so that whole numbers are fine enough.
const LEFT: f64 = 170.0;
const RIGHT: f64 = 1650.0;
const TOP: f64 = 210.0;
const BOTTOM: f64 = 800.0;

/// Colours and dashes of the lines, as in the light style sheet.
const STROKES: [(&str, &str); LINES_MAX] =
    [("#0b6e66", "none"), ("#8a5200", "12 6"), ("#5b5a57", "4 6")];

/// `None` if no line has a point.
pub(in crate::pages::plots) fn picture(
    finding: &str,
    about: &str,
    source: &str,
    lines: &[Line<'_>],
) -> Option<String> {
    let frame = Frame::of(Height::Tall, lines)?;
    let across = |part: f64| units(LEFT + part * (RIGHT - LEFT));
    let down = |up: f64| units(BOTTOM - up * (BOTTOM - TOP));
    let path = |points: &[_]| frame.path(points, RIGHT - LEFT, BOTTOM - TOP);
    let strokes = || lines.iter().zip(STROKES);
    let drawn = html! {
        svg xmlns="http://www.w3.org/2000/svg" width="960" height="480" viewBox="0 0 1920 960" font-family="system-ui, sans-serif" font-size="28" fill="#5b5a57" {
            title { (finding) }
            rect width="1920" height="960" fill="#ffffff" {}
            text x="48" y="84" font-size="44" font-weight="600" fill="#1c1d1f" { (finding) }
            text x="48" y="136" { (about) }
            text x="48" y="924" { (source) }
            @for value in frame.scale.ticks() {
                @let y = down(frame.up(value));
                line x1=(across(0.0)) x2=(across(1.0)) y1=(y) y2=(y) stroke="#e3dfd8" stroke-width="2" {}
                text x=(across(0.0)) y=(y) dx="-16" dy="9" text-anchor="end" { (label(value)) }
            }
            @for (day, name) in frame.days() {
                @let part = frame.across(day);
                text x=(across(part)) y=(down(0.0)) dy="44" text-anchor=(anchor(part)) { (name) }
            }
            g transform=(format!("translate({LEFT} {TOP})")) fill="none" stroke-linejoin="round" {
                @for (line, (colour, _)) in strokes() {
                    path d=(path(&line.raw)) stroke=(colour) stroke-width="2" opacity=".3" {}
                }
                @for (line, (colour, dash)) in strokes() {
                    path d=(path(&line.points)) stroke=(colour) stroke-width="5" stroke-dasharray=(dash) {}
                }
            }
            @for (line, (colour, _)) in strokes().filter(|(line, _)| line.points.len() <= DOTS_MAX) {
                @for point in &line.points {
                    circle cx=(across(frame.across(point.day))) cy=(down(frame.up(point.value))) r="7" fill=(colour) {}
                }
            }
            @for (up, number, value) in frame.ends(lines) {
                @if let Some((line, (colour, _))) = strokes().nth(number) {
                    text x=(across(1.0)) y=(down(up)) dx="16" dy="9" font-weight="600" fill=(colour) {
                        (rounded(value)) @if lines.len() > 1 { " " (line.name) }
                    }
                }
            }
        }
    };
    Some(drawn.into_string())
}

fn units(value: f64) -> String {
    format!("{value:.0}")
}
