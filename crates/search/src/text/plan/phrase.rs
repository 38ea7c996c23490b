//! Where terms stand one behind the other.

/// How often a phrase is in a text: each time counts the less the farther its words are from where they should be. `places` has for each
/// word where it stands in the phrase, and its positions in the text, ascending.
pub(super) fn frequency(places: &[(u32, Vec<u32>)], slop: u32) -> f32 {
    if places.iter().any(|(_, positions)| positions.is_empty()) {
        return 0.0;
    }
    match slop {
        0 => exact(places) as f32,
        slop => sloppy(places, slop),
    }
}

fn exact(places: &[(u32, Vec<u32>)]) -> usize {
    let Some(((first, positions), others)) = places.split_first() else {
        return 0;
    };
    let stands = |at: &&u32| {
        others.iter().all(|(offset, own)| {
            let wanted = i64::from(**at) + i64::from(*offset) - i64::from(*first);
            u32::try_from(wanted).is_ok_and(|wanted| own.binary_search(&wanted).is_ok())
        })
    };
    positions.iter().filter(stands).count()
}

/// Words move towards each other from where they are; what they move in all must be at most `slop`.
fn sloppy(places: &[(u32, Vec<u32>)], slop: u32) -> f32 {
    let at = |word: usize, number: usize| i64::from(places[word].1[number]) - i64::from(places[word].0);
    let mut numbers = vec![0_usize; places.len()];
    let mut frequency = 0.0;
    loop {
        // Where each word would have the phrase begin.
        let low = (0..places.len()).min_by_key(|word| at(*word, numbers[*word]));
        let high = (0..places.len()).map(|word| at(word, numbers[word])).max();
        let (Some(low), Some(high)) = (low, high) else {
            return frequency;
        };
        let begin = at(low, numbers[low]);
        let next = (0..places.len())
            .filter(|word| *word != low)
            .map(|word| at(word, numbers[word]))
            .min();
        // The lowest goes on as long as that makes the match shorter.
        let mut number = numbers[low];
        let mut best = (high - begin).max(0);
        while number + 1 < places[low].1.len() && next.is_some_and(|next| at(low, number + 1) <= next) {
            number += 1;
            best = high - at(low, number);
        }
        numbers[low] = number;
        if best <= i64::from(slop) && is_distinct(places, &numbers) {
            frequency += 1.0 / (1.0 + best as f32);
        }
        if number + 1 == places[low].1.len() {
            return frequency;
        }
        numbers[low] = number + 1;
    }
}

/// Whether no word of the text stands for two of the phrase.
fn is_distinct(places: &[(u32, Vec<u32>)], numbers: &[usize]) -> bool {
    let mut taken: Vec<u32> = places
        .iter()
        .zip(numbers)
        .map(|((_, own), number)| own[*number])
        .collect();
    taken.sort_unstable();
    taken.windows(2).all(|pair| pair[0] != pair[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_move_as_far_as_they_may() {
        // A word for each letter; the phrase is "ab" or "aa".
        let places = |text: &str, phrase: &str| -> Vec<(u32, Vec<u32>)> {
            let positions = |word: char| {
                text.chars()
                    .zip(0..)
                    .filter(|(c, _)| *c == word)
                    .map(|(_, at)| at)
                    .collect()
            };
            phrase
                .chars()
                .zip(0..)
                .map(|(word, at)| (at, positions(word)))
                .collect()
        };
        for (text, phrase, slop, expected) in [
            ("ab", "ab", 0, 1.0),
            ("abab", "ab", 0, 2.0),
            ("axb", "ab", 0, 0.0),
            ("axb", "ab", 1, 0.5),
            ("ba", "ab", 1, 0.0),
            ("ba", "ab", 2, 1.0 / 3.0),
            ("a", "aa", 5, 0.0),
            ("aa", "aa", 0, 1.0),
            ("axxb", "ab", 1, 0.0),
        ] {
            assert_eq!(
                frequency(&places(text, phrase), slop),
                expected,
                "{text} {phrase} {slop}"
            );
        }
    }
}
