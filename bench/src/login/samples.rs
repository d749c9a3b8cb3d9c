//! Two samples of times, and whether a test distinguishes them.

/// Size of the groups whose minimum is used: an attacker takes minima to remove the jitter.
pub(crate) const GROUP: usize = 10;

/// The probability that two samples from one distribution differ at least this much (the
/// Kolmogorov-Smirnov test, with its limit for large samples).
pub(crate) fn probability(one: &[f64], other: &[f64]) -> f64 {
    let (one, other) = (sorted(one), sorted(other));
    let (n, m) = (one.len(), other.len());
    if n == 0 || m == 0 {
        return 1.0;
    }
    let share = |sample: &[f64], up_to: f64| {
        sample.partition_point(|value| *value <= up_to) as f64 / sample.len() as f64
    };
    let apart = |value: &f64| (share(&one, *value) - share(&other, *value)).abs();
    let distance = one.iter().chain(&other).map(apart).fold(0.0, f64::max);
    let size = ((n * m) as f64 / (n + m) as f64).sqrt();
    limit((size + 0.12 + 0.11 / size) * distance)
}

fn limit(scaled: f64) -> f64 {
    // Below this the sum does not converge, and the probability is 1 to four digits.
    if scaled < 0.3 {
        return 1.0;
    }
    let term = |k: i32| {
        let k = f64::from(k);
        (-2.0 * k * k * scaled * scaled).exp()
    };
    let sum: f64 = (1..=100)
        .map(|k| if k % 2 == 1 { term(k) } else { -term(k) })
        .sum();
    (2.0 * sum).clamp(0.0, 1.0)
}

/// The minimum of each [`GROUP`], in the order of the samples.
pub(crate) fn minima(sample: &[f64]) -> Vec<f64> {
    let groups = sample.chunks_exact(GROUP);
    groups
        .map(|group| group.iter().copied().fold(f64::INFINITY, f64::min))
        .collect()
}

pub(crate) fn sorted(sample: &[f64]) -> Vec<f64> {
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The quantile of a sample: the value that this fraction of it does not exceed.
pub(crate) fn quantile(sample: &[f64], share: f64) -> f64 {
    let sorted = sorted(sample);
    let last = sorted.len().saturating_sub(1);
    let place = (share * last as f64).round() as usize;
    sorted.get(place).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng as _, SeedableRng as _};

    use super::*;

    /// Uniform in a tenth of a second, like the jitter, from `begin` on.
    fn sample(seed: u64, begin: f64) -> Vec<f64> {
        let mut random = StdRng::seed_from_u64(seed);
        (0..500)
            .map(|_| begin + random.random_range(0.0..0.1))
            .collect()
    }

    #[test]
    fn ten_milliseconds_are_told_apart_and_nothing_is_not() {
        assert!(probability(&sample(1, 1.0), &sample(2, 1.0)) > 0.01);
        assert!(probability(&sample(1, 1.0), &sample(2, 1.01)) > 0.0);
        assert!(probability(&sample(1, 1.0), &sample(2, 1.012)) < 0.01);
        let (one, other) = (minima(&sample(1, 1.0)), minima(&sample(2, 1.02)));
        assert!(probability(&one, &other) < 0.01);
    }

    /// From the table of the limit distribution: 1.36 and 1.63.
    #[test]
    fn the_limit_is_that_of_the_tables() {
        for (scaled, expect) in [(1.358, 0.05), (1.628, 0.01), (0.1, 1.0)] {
            assert!((limit(scaled) - expect).abs() < 0.001, "{scaled}");
        }
    }
}
