//! Lines over days as SVG, for a page to hold.
//!
//! In: lines of bounded length. Out: an `svg` element with a title and a description. It carries no style and no script: each line has a colour that the
//! style sheet knows as that line's, and gives another in the dark. Numbers alone reach the drawing; what strangers wrote stands in the page's own text.

use std::fmt::Write as _;

use jiff::civil::Date;
use maud::{Markup, PreEscaped, html};
use plotters::prelude::{
    ChartBuilder, Color, IntoDrawingArea, LineSeries, RGBColor, SVGBackend, TRANSPARENT,
};
use plotters::style::IntoTextStyle;

use crate::error::SiteError;
use crate::history::Point;

/// Lines that can be told apart in one plot: the style sheet has as many colours and dashes.
pub(crate) const LINES_MAX: usize = 9;

/// What the style sheet draws in the page's own colours.
const INK: RGBColor = RGBColor(1, 1, 1);
const GRID: RGBColor = RGBColor(2, 2, 2);

/// The colour that stands for a line, `#0300NN`.
fn stand_in(line: usize) -> RGBColor {
    RGBColor(3, 0, u8::try_from(line).unwrap_or(u8::MAX))
}

/// How large a plot is, in its own units.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Extent {
    /// As wide as the page.
    Wide,
    /// One of several side by side.
    Small,
}

impl Extent {
    fn size(self) -> (u32, u32) {
        match self {
            Self::Wide => (480, 220),
            Self::Small => (240, 120),
        }
    }
}

/// What a plot is called, and how its elements are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caption<'a> {
    /// Begins the names of its elements; unique in its page.
    pub(crate) id: &'a str,
    pub(crate) title: &'a str,
    /// What it shows, for those who don't see it.
    pub(crate) says: &'a str,
}

/// Draws at most [`LINES_MAX`] lines.
pub(crate) fn plot(
    caption: Caption<'_>,
    extent: Extent,
    lines: &[Vec<Point>],
) -> Result<Markup, SiteError> {
    let mut drawn = String::new();
    draw(&mut drawn, extent, lines).map_err(|why| SiteError::Plot { why })?;
    let content = drawn
        .split_once('>')
        .and_then(|(_, rest)| rest.rsplit_once("</svg>"))
        .map(|(content, _)| content.trim())
        .ok_or_else(|| SiteError::Plot {
            why: "it is no svg element".to_owned(),
        })?;
    let (width, height) = extent.size();
    let title = format!("{}-title", caption.id);
    let says = format!("{}-says", caption.id);
    Ok(html! {
        svg xmlns="http://www.w3.org/2000/svg" class="plot" viewBox=(format!("0 0 {width} {height}")) role="img" aria-labelledby=(format!("{title} {says}")) {
            title id=(title) { (caption.title) }
            desc id=(says) { (caption.says) }
            (PreEscaped(content))
        }
    })
}

fn draw(svg: &mut String, extent: Extent, lines: &[Vec<Point>]) -> Result<(), String> {
    let points = || lines.iter().flatten();
    let (Some(first), Some(last)) = (
        points().map(|point| point.day).min(),
        points().map(|point| point.day).max(),
    ) else {
        svg.push_str("<svg></svg>");
        return Ok(());
    };
    let length = days_between(first, last).max(1);
    let top = points().map(|point| point.value).fold(1.0_f64, f64::max) * 1.05;
    let area = SVGBackend::with_string(svg, extent.size()).into_drawing_area();
    let (font, labels) = match extent {
        Extent::Wide => (17, 5),
        Extent::Small => (16, 2),
    };
    let mut chart = ChartBuilder::on(&area)
        .margin(6)
        .margin_right(34)
        .x_label_area_size(22)
        .y_label_area_size(46)
        .build_cartesian_2d(0..length, 0.0..top)
        .map_err(|error| error.to_string())?;
    let text = ("sans-serif", font, &INK).into_text_style(&area);
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(labels)
        .y_labels(labels)
        .x_label_formatter(&|offset| label_of_day(first, length, *offset))
        .y_label_formatter(&|value| label_of_count(*value))
        .label_style(text)
        .axis_style(INK)
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .draw()
        .map_err(|error| error.to_string())?;
    for (number, line) in lines.iter().take(LINES_MAX).enumerate() {
        let points = line
            .iter()
            .map(|point| (days_between(first, point.day), point.value));
        chart
            .draw_series(LineSeries::new(points, stand_in(number).stroke_width(2)))
            .map_err(|error| error.to_string())?;
    }
    area.present().map_err(|error| error.to_string())
}

fn days_between(first: Date, last: Date) -> i32 {
    first.until(last).map_or(0, |span| span.get_days())
}

/// Days from which on the year says more than the day.
const YEARS_FROM_DAYS: i32 = 300;

/// `22 Nov`, or `Nov 2026` where a plot spans years.
fn label_of_day(first: Date, length: i32, offset: i32) -> String {
    let form = if length < YEARS_FROM_DAYS {
        "%-d %b"
    } else {
        "%b %Y"
    };
    let day = jiff::Span::new()
        .try_days(offset)
        .and_then(|span| first.checked_add(span));
    day.map_or_else(
        |_beyond_the_calendar| String::new(),
        |day| day.strftime(form).to_string(),
    )
}

/// `1234`, `12k`, `1.2M`: what fits beside an axis.
fn label_of_count(value: f64) -> String {
    let mut label = String::new();
    let (value, unit) = if value >= 999_500.0 {
        (value / 1_000_000.0, "M")
    } else if value >= 9_999.5 {
        (value / 1000.0, "k")
    } else {
        (value, "")
    };
    let digits = usize::from(value < 9.95);
    // Writing to a String can't fail.
    write!(label, "{value:.digits$}").ok();
    let mut label = label.strip_suffix(".0").unwrap_or(&label).to_owned();
    label.push_str(unit);
    label
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

    fn line(values: &[f64]) -> Vec<Point> {
        let mut day = date(2026, 1, 1);
        values
            .iter()
            .map(|value| {
                day = day.tomorrow().unwrap();
                Point { day, value: *value }
            })
            .collect()
    }

    #[test]
    fn the_style_sheet_knows_every_colour_that_is_drawn() {
        let lines: Vec<_> = (0..LINES_MAX).map(|_| line(&[1.0, 2.0, 7.0])).collect();
        let svg = plot(CAPTION, Extent::Wide, &lines).unwrap().into_string();
        let colours: std::collections::BTreeSet<_> = svg
            .split('"')
            .filter(|value| value.starts_with('#'))
            .collect();
        assert!(colours.len() >= LINES_MAX + 2, "{colours:?}");
        for colour in colours {
            assert!(STYLE.contains(&format!("\"{colour}\"")), "{colour}");
        }
    }

    #[test]
    fn a_plot_carries_its_text_escaped_and_neither_style_nor_script() {
        let svg = plot(CAPTION, Extent::Small, &[line(&[3.0, 0.0])])
            .unwrap()
            .into_string();
        assert!(svg.contains("&lt;Title&gt;") && svg.contains("&quot;Says&quot;"));
        assert!(svg.contains(r#"aria-labelledby="x-title x-says""#));
        for never in ["style=", "<style", "<script", "href", "<Title"] {
            assert!(!svg.contains(never), "{never}: {svg}");
        }
    }

    #[test]
    fn one_day_or_none_is_no_panic() {
        for lines in [vec![], vec![vec![]], vec![line(&[0.0])], vec![line(&[5e9])]] {
            let svg = plot(CAPTION, Extent::Small, &lines).unwrap().into_string();
            assert!(svg.ends_with("</svg>"), "{svg}");
        }
    }

    #[test]
    fn labels_are_short() {
        for (value, expect) in [
            (0.0, "0"),
            (0.5, "0.5"),
            (7.0, "7"),
            (1234.0, "1234"),
            (9999.4, "9999"),
            (12_000.0, "12k"),
            (999_400.0, "999k"),
            (999_600.0, "1M"),
            (1_200_000.0, "1.2M"),
        ] {
            assert_eq!(label_of_count(value), expect);
        }
        assert_eq!(label_of_day(date(2026, 1, 1), 9, 1), "2 Jan");
        assert_eq!(label_of_day(date(2026, 1, 1), 900, 1), "Jan 2026");
    }
}
