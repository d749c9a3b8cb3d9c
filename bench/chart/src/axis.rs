//! One axis of a chart: its range, its marks and their labels.
//!
//! An axis is made from the values to show, and implements the coordinate traits of `plotters`.
//! Without values it ranges from 0 to 1.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::prelude::Ranged;

/// Distances between two marks of a linear axis, as multiples of a power of ten.
const STEPS: [f64; 4] = [1.0, 2.0, 5.0, 10.0];

/// Most marks. More would be too close together to read.
const MARKS_MAX: u8 = 8;

/// Ratio of the largest to the smallest value above which the horizontal axis is logarithmic. Up to
/// two decades, a linear axis keeps the smallest values apart.
const LINEAR_MAX: f64 = 100.0;

/// Space after the last value, as a share of the axis, so that its dot is not cut off.
const MARGIN: f64 = 0.02;

/// Values that never fall below this share of the highest can be shown on an axis that begins
/// there.
const CLOSELY_FROM: f64 = 0.9;

/// The smallest and largest magnitudes that are shown. Beyond them, floating-point arithmetic would
/// lose the marks.
const SIZES: Range<f64> = 1e-9..1e15;

/// How the axis of values is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// From 0, so that lengths can be compared.
    FromZero,
    /// From 0, or from nine tenths of the highest value if no value is lower. For shares that are
    /// close to the whole.
    Closely,
}

/// A linear or logarithmic axis.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    low: f64,
    high: f64,
    growth: Growth,
    marks: Vec<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Growth {
    Linear,
    Logarithmic,
}

impl Axis {
    /// The horizontal axis, for chosen quantities: days, rows, checks in flight. If there are few
    /// different values, each of them gets a mark.
    pub(crate) fn of_places(places: impl Iterator<Item = f64>) -> Self {
        let mut places: Vec<f64> = places.filter(|place| is_shown(*place)).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let (low, high) = ends(&places);
        let mut axis = if is_above_zero(low) && high / low > LINEAR_MAX {
            Self::logarithmic(low, high)
        } else {
            Self::linear(low.min(0.0), high + (high - low.min(0.0)) * MARGIN)
        };
        if !places.is_empty() && places.len() <= usize::from(MARKS_MAX) {
            axis.marks = places;
        }
        axis
    }

    /// The vertical axis, for measured values.
    pub(crate) fn of_values(found: impl Iterator<Item = f64>, values: Values) -> Self {
        let found: Vec<f64> = found.filter(|value| is_shown(*value)).collect();
        let (low, high) = ends(&found);
        let top = high + (high - low.min(0.0)) * MARGIN;
        match values {
            Values::FromZero => Self::linear(low.min(0.0), top),
            Values::Closely if low > CLOSELY_FROM * top => Self::linear(CLOSELY_FROM * top, top),
            Values::Closely => Self::linear(low.min(0.0), top),
        }
    }

    /// From `low` to `high`, or a bit further if they are equal.
    fn linear(low: f64, high: f64) -> Self {
        let high = if high - low < SIZES.start {
            low + 1.0
        } else {
            high
        };
        let rough = (high - low) / f64::from(MARKS_MAX);
        let power = 10.0_f64.powf(rough.log10().floor());
        let step = STEPS.map(|step| step * power);
        let step = step.into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let first = (low / step).ceil();
        let marks = (0..=MARKS_MAX).map(|number| (first + f64::from(number)) * step);
        Self {
            low,
            high,
            growth: Growth::Linear,
            marks: marks.take_while(|mark| *mark <= high).collect(),
        }
    }

    /// From a bit below `low` to a bit above `high`, which is above 0. Each power of ten between
    /// them gets a mark.
    fn logarithmic(low: f64, high: f64) -> Self {
        let low = if is_above_zero(low) {
            low
        } else {
            high / LINEAR_MAX
        };
        let margin = (high / low).max(2.0).powf(MARGIN);
        let (low, high) = (low / margin, high * margin);
        let decades = SIZES.start.log10()..SIZES.end.log10();
        let mut marks = Vec::new();
        let mut power = low.log10().ceil().max(decades.start);
        while power <= high.log10().min(decades.end) {
            marks.push(10.0_f64.powf(power));
            power += 1.0;
        }
        Self {
            low,
            high,
            growth: Growth::Logarithmic,
            marks,
        }
    }

    /// Whether the axis can show a value.
    pub(crate) fn shows(&self, value: f64) -> bool {
        is_shown(value) && (self.growth == Growth::Linear || is_above_zero(value))
    }

    /// A value's position along the axis: 0 at its beginning, 1 at its end.
    fn share(&self, value: f64) -> f64 {
        match self.growth {
            Growth::Linear => (value - self.low) / (self.high - self.low),
            Growth::Logarithmic => (value / self.low).ln() / (self.high / self.low).ln(),
        }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let length = f64::from(limit.1) - f64::from(limit.0);
        (f64::from(limit.0) + length * self.share(*value)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // Finer grid lines would draw attention away from the chart's lines.
        if hint.weight().allow_light_points() {
            return Vec::new();
        }
        self.marks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        told(*value)
    }
}

/// Whether a number is finite and within the largest magnitude.
fn is_shown(value: f64) -> bool {
    value.abs() < SIZES.end
}

/// Smaller magnitudes than the least count as 0.
fn is_above_zero(value: f64) -> bool {
    value >= SIZES.start
}

/// The lowest and the highest value; 0 and 1 if there are none.
fn ends(values: &[f64]) -> (f64, f64) {
    let low = values.iter().copied().reduce(f64::min);
    let high = values.iter().copied().reduce(f64::max);
    low.zip(high).unwrap_or((0.0, 1.0))
}

/// A number without trailing zeros. Numbers of more than four digits have spaces between thousands.
fn told(value: f64) -> String {
    let text = format!("{value:.9}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = whole.trim_start_matches('-').len();
    let mut told = String::new();
    for (at, letter) in whole.chars().rev().enumerate() {
        if digits > 4 && at > 0 && at < digits && at % 3 == 0 {
            told.insert(0, ' ');
        }
        told.insert(0, letter);
    }
    if !part.is_empty() {
        told.push('.');
        told.push_str(part);
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(axis: &Axis) -> Vec<String> {
        axis.marks.iter().map(|mark| told(*mark)).collect()
    }

    #[test]
    fn few_places_are_marked_each_and_many_by_round_steps() {
        let few = Axis::of_places([16.0, 1.0, 2.0, 4.0, 8.0, 4.0].into_iter());
        assert_eq!(marks(&few), ["1", "2", "4", "8", "16"]);
        let many = Axis::of_places((1..=30).map(f64::from));
        assert_eq!(marks(&many), ["0", "5", "10", "15", "20", "25", "30"]);
    }

    #[test]
    fn rows_of_some_decades_stand_equally_far_apart() {
        let axis = Axis::of_places([1e4, 1e5, 1e6, 1e7].into_iter());
        assert_eq!(
            marks(&axis),
            ["10 000", "100 000", "1 000 000", "10 000 000"]
        );
        let at = |value: f64| axis.map(&value, (0, 1000));
        let steps = [1e4, 1e5, 1e6].map(|rows| at(rows * 10.0) - at(rows));
        assert!(
            steps.iter().all(|step| (step - steps[0]).abs() <= 1),
            "{steps:?}"
        );
        // Two decades or less stay linear.
        let axis = Axis::of_places([1.0, 50.0, 100.0].into_iter());
        assert_eq!(axis.growth, Growth::Linear);
    }

    #[test]
    fn values_begin_at_zero_unless_they_are_looked_at_closely() {
        let low = |values: [f64; 2], how| Axis::of_values(values.into_iter(), how).low;
        assert!(low([98.0, 100.0], Values::FromZero).abs() < 1e-9);
        assert!(low([98.0, 100.0], Values::Closely) > 91.0);
        assert!(low([9.0, 100.0], Values::Closely).abs() < 1e-9);
        assert!(low([-3.0, 100.0], Values::FromZero) <= -3.0);
    }

    #[test]
    fn no_values_and_odd_ones_make_an_axis_all_the_same() {
        for values in [
            &[][..],
            &[0.0],
            &[7.0],
            &[5e-324],
            &[1e-320, 1e14],
            &[f64::NAN, f64::INFINITY, 1e300],
            &[-5.0, -5.0],
        ] {
            let mut axes = vec![Axis::of_places(values.iter().copied())];
            for how in [Values::FromZero, Values::Closely] {
                axes.push(Axis::of_values(values.iter().copied(), how));
            }
            for axis in axes {
                assert!(axis.low < axis.high, "{values:?}: {axis:?}");
                assert!(axis.high.is_finite() && axis.low.is_finite(), "{axis:?}");
                assert!(axis.marks.len() <= 25, "{values:?}: {axis:?}");
            }
        }
    }
}
