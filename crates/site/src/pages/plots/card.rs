//! The preview picture for links to the site (Open Graph): the number of listed instances over
//! time.
//!
//! Its words and digits are pictures themselves, in `assets/card`: drawing text needs a font, and a
//! container without files has none.

use std::io::Cursor;

use png::{BitDepth, ColorType, Compression, Decoder, Encoder, Transformations};

use super::draw::{days_between, whole};
use crate::error::SiteError;
use crate::history::Point;

/// Logo, title and words, without the number.
const TEMPLATE: &[u8] = include_bytes!("../../../assets/card/template.png");
/// The ten digits in a row, each of the same width.
const DIGITS: &[u8] = include_bytes!("../../../assets/card/digits.png");

/// Position of the number, in pixels.
const NUMBER_LEFT: usize = 60;
const NUMBER_TOP: usize = 172;
/// Pixels between groups of three digits.
const GROUP_GAP: usize = 24;

/// The line's highest position, and its position for 0, in pixels.
const LINE_TOP: f64 = 390.0;
const LINE_BOTTOM: f64 = 630.0;
/// Half of the line's width in pixels.
const LINE_HALF: f64 = 3.0;

const ACCENT: [u8; 3] = [0x0b, 0x6e, 0x66];
/// The accent colour's share in the area below the line.
const AREA_SHARE: f64 = 0.14;

const CHANNELS: usize = 3;

/// The picture as a PNG file of 1200 × 630 pixels.
pub(crate) fn card(listed: u64, points: &[Point]) -> Result<Vec<u8>, SiteError> {
    drawn(listed, points).map_err(|why| SiteError::Picture { why })
}

fn drawn(listed: u64, points: &[Point]) -> Result<Vec<u8>, String> {
    let mut picture = Picture::read(TEMPLATE)?;
    let digits = Picture::read(DIGITS)?;
    picture.number(listed, &digits);
    picture.line(points);
    picture.write()
}

/// Rows of pixels with three bytes each.
struct Picture {
    width: usize,
    rgb: Vec<u8>,
}

impl Picture {
    fn read(bytes: &[u8]) -> Result<Self, String> {
        let mut decoder = Decoder::new(Cursor::new(bytes));
        decoder.set_transformations(Transformations::normalize_to_color8());
        let mut reader = decoder.read_info().map_err(|error| error.to_string())?;
        let size = reader.output_buffer_size().ok_or("it is too large")?;
        let mut pixels = vec![0; size];
        let frame = reader
            .next_frame(&mut pixels)
            .map_err(|error| error.to_string())?;
        let channels = frame.color_type.samples();
        let rgb = pixels
            .chunks_exact(channels)
            .filter_map(|pixel| pixel.get(..CHANNELS))
            .flatten()
            .copied()
            .collect();
        Ok(Self {
            width: usize::try_from(frame.width).map_err(|error| error.to_string())?,
            rgb,
        })
    }

    fn write(&self) -> Result<Vec<u8>, String> {
        let rows = self.rgb.len().checked_div(self.row_bytes()).unwrap_or(0);
        let size = |pixels: usize| u32::try_from(pixels).map_err(|error| error.to_string());
        let mut file = Vec::new();
        let mut encoder = Encoder::new(&mut file, size(self.width)?, size(rows)?);
        encoder.set_color(ColorType::Rgb);
        encoder.set_depth(BitDepth::Eight);
        encoder.set_compression(Compression::Balanced);
        let mut writer = encoder.write_header().map_err(|error| error.to_string())?;
        writer
            .write_image_data(&self.rgb)
            .map_err(|error| error.to_string())?;
        writer.finish().map_err(|error| error.to_string())?;
        Ok(file)
    }

    fn row_bytes(&self) -> usize {
        self.width.saturating_mul(CHANNELS)
    }

    fn number(&mut self, number: u64, digits: &Self) {
        let text = number.to_string();
        let width = digits.width / 10;
        let mut left = NUMBER_LEFT;
        for (at, digit) in text.bytes().enumerate() {
            if at > 0 && text.len().saturating_sub(at).is_multiple_of(3) {
                left = left.saturating_add(GROUP_GAP);
            }
            let from = usize::from(digit.saturating_sub(b'0')).saturating_mul(width);
            self.paste(digits, from, width, left);
            left = left.saturating_add(width);
        }
    }

    /// Copies columns of another picture to the number's position. Excess columns are cut.
    fn paste(&mut self, other: &Self, from: usize, width: usize, left: usize) {
        let row_bytes = self.row_bytes();
        for (row, source) in other.rgb.chunks_exact(other.row_bytes()).enumerate() {
            let start = from.saturating_mul(CHANNELS);
            let bytes = width.saturating_mul(CHANNELS);
            let source = source.get(start..start.saturating_add(bytes));
            let to = NUMBER_TOP
                .saturating_add(row)
                .saturating_mul(row_bytes)
                .saturating_add(left.saturating_mul(CHANNELS));
            let target = self.rgb.get_mut(to..to.saturating_add(bytes));
            if let (Some(source), Some(target)) = (source, target)
                && left.saturating_add(width) <= self.width
            {
                target.copy_from_slice(source);
            }
        }
    }

    fn line(&mut self, points: &[Point]) {
        let (Some(first), Some(last)) = (points.first(), points.last()) else {
            return;
        };
        let days = days_between(first.day, last.day).max(1);
        let top = points.iter().map(|point| point.value).fold(1.0, f64::max);
        let heights: Vec<(f64, f64)> = points
            .iter()
            .map(|point| {
                let across = f64::from(days_between(first.day, point.day)) / f64::from(days);
                let up = point.value / top;
                (across, LINE_BOTTOM - (LINE_BOTTOM - LINE_TOP) * up)
            })
            .collect();
        let columns = u32::try_from(self.width).unwrap_or(1).max(2);
        for column in 0..columns {
            let across = f64::from(column) / f64::from(columns.saturating_sub(1));
            self.column(column, height_at(&heights, across));
        }
    }

    /// Draws one column of the line and of the area below it.
    fn column(&mut self, column: u32, height: f64) {
        let first = whole((height - LINE_HALF - 1.0).max(0.0));
        for row in first..whole(LINE_BOTTOM) {
            let row = u32::try_from(row).unwrap_or(u32::MAX);
            let distance = f64::from(row) - height;
            let line = (LINE_HALF + 0.5 - distance.abs()).clamp(0.0, 1.0);
            let area = if distance > 0.0 { AREA_SHARE } else { 0.0 };
            self.blend(column, row, line.max(area));
        }
    }

    fn blend(&mut self, column: u32, row: u32, share: f64) {
        let (column, row) = (usize::try_from(column), usize::try_from(row));
        let (Ok(column), Ok(row)) = (column, row) else {
            return;
        };
        let start = row
            .saturating_mul(self.row_bytes())
            .saturating_add(column.saturating_mul(CHANNELS));
        let pixel = self.rgb.get_mut(start..start.saturating_add(CHANNELS));
        for (byte, accent) in pixel.into_iter().flatten().zip(ACCENT) {
            let mixed = f64::from(*byte) * (1.0 - share) + f64::from(accent) * share;
            *byte = u8::try_from(whole(mixed)).unwrap_or(u8::MAX);
        }
    }
}

/// The height of a line through these points, from left to right.
fn height_at(points: &[(f64, f64)], across: f64) -> f64 {
    let next = points.iter().position(|(at, _)| *at >= across);
    let at = |number: usize| points.get(number).copied().unwrap_or_default();
    match next {
        None => at(points.len().saturating_sub(1)).1,
        Some(0) => at(0).1,
        Some(next) => {
            let ((left, from), (right, to)) = (at(next.saturating_sub(1)), at(next));
            let share = if right > left {
                (across - left) / (right - left)
            } else {
                1.0
            };
            from + (to - from) * share
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn read(listed: u64, values: &[f64]) -> Picture {
        let mut day = date(2026, 1, 1);
        let points: Vec<_> = values
            .iter()
            .map(|value| {
                day = day.tomorrow().unwrap();
                Point { day, value: *value }
            })
            .collect();
        Picture::read(&card(listed, &points).unwrap()).unwrap()
    }

    /// Whether the pixel differs from the background.
    fn is_drawn(picture: &Picture, column: usize, row: usize) -> bool {
        let start = row * picture.row_bytes() + column * CHANNELS;
        picture.rgb[start..start + CHANNELS] != picture.rgb[..CHANNELS]
    }

    #[test]
    fn the_line_goes_through_its_values() {
        let picture = read(1, &[0.0, 10.0, 10.0]);
        assert_eq!((picture.width, picture.rgb.len()), (1200, 1200 * 630 * 3));
        assert!(!is_drawn(&picture, 10, 600));
        assert!(is_drawn(&picture, 600, 391) && is_drawn(&picture, 1190, 391));
        assert!(!is_drawn(&picture, 600, 380) && is_drawn(&picture, 600, 620));
    }

    #[test]
    fn any_number_and_any_line_fit() {
        for (listed, values) in [
            (0, &[][..]),
            (u64::MAX, &[5e9][..]),
            (30_234, &[0.0, 0.0][..]),
        ] {
            assert_eq!(read(listed, values).width, 1200);
        }
        let width = |listed| {
            let picture = read(listed, &[]);
            let is_inked = |column: &usize| (180..280).any(|row| is_drawn(&picture, *column, row));
            (60..1140).filter(is_inked).count()
        };
        assert!(width(8) < width(888));
    }
}
