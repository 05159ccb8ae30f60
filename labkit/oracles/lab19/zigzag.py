"""Lab 19: the oracle of a text that is dealt to ranks."""

from __future__ import annotations

from labkit.compare import inputs_untouched
from labkit.exercises.lab19.zigzag import NO_LABEL
from labkit.oracles.calls import as_call
from labkit.oracles.hints import any_of
from labkit.oracles.lab19.zigzag_mistakes import (
    as_dealt,
    beyond_the_end,
    chunks_round_robin,
    contiguous,
    contiguous_padded,
    differs_in_length,
    gathered,
    is_order,
    labels_are,
    local_positions,
    longer_at_the_end,
    never_filled,
    not_dealt,
    one_behind_the_other,
    padded_at_the_end,
    padding_written_last,
    rest_is_lost,
    rolled,
    round_robin,
    shifted_after_dealing,
    the_inputs,
    undone_as,
    with_padding,
)
from labkit.oracles.lab19.zigzag_properties import every_position_once, parts_fit, whole_again, work_is_even
from labkit.spec import Hint, Observation, Oracle

NOT_THE_NEXT = (
    "The labels were shifted after dealing. Where two chunks meet, the input in the next place is not the next token "
    "of the text. Make the labels from the whole text, tokens[:, 1:], and deal them."
)


def in_words(run: Observation) -> str:
    case = run.case
    deal = f"deal(<int64 of shape ({case.n_texts}, {case.n_tokens + 1})>, {case.n_ranks})"
    return f"{as_call('zigzag', case.n_tokens, case.n_ranks)}, {deal}, and undo of {case.n_ranks} parts"


ZIGZAG = Oracle(
    id="19-zigzag",
    call=in_words,
    judge=(inputs_untouched, every_position_once, work_is_even, parts_fit, whole_again),
    axis="other lengths and numbers of ranks: lengths that 2n does not divide, texts shorter than 2n tokens",
    errors={
        "stack expects each tensor to be equal size": "The ranks have different numbers of tokens where 2n does not "
        "divide the length: pad the shorter parts.",
        "tensors used as indices must be": "A rank may have no token at all, and torch.tensor([]) is float32, which is "
        "no index: torch.tensor(mine, dtype=torch.int64).",
        "is out of bounds": "An index lies outside of the text. Where 2n does not divide its length, the chunks cannot "
        "all have the same size.",
    },
    diagnose=(
        Hint(
            any_of(is_order(contiguous), is_order(contiguous_padded)),
            "These are contiguous blocks: the first rank has the least work and the last one the most. Cut the text "
            "into 2n chunks, and give each rank an early one and a late one.",
        ),
        Hint(
            is_order(round_robin),
            "Round robin is nearly even, but in every round rank r gets a later token than rank r-1, so it sees one "
            "pair more for each of its tokens. With chunks r and 2n-1-r such differences cancel.",
        ),
        Hint(
            is_order(chunks_round_robin),
            "Rank r has chunks r and n+r, so both of its chunks are later than those of rank r-1. Deal the second half "
            "in reverse: the second chunk of rank r is 2n-1-r.",
        ),
        Hint(
            is_order(padded_at_the_end),
            "Chunks of the same size, rounded up, leave all the missing tokens to the end of the text, where a token "
            "costs the most, so rank 0 has much less work. Make chunks whose sizes differ by at most one.",
        ),
        Hint(
            is_order(longer_at_the_end),
            "The last chunk takes all tokens that are left over, so rank 0, which has it, has too much work. Make "
            "chunks whose sizes differ by at most one.",
        ),
        Hint(
            is_order(rest_is_lost),
            "The tokens that are left over when the length is divided by 2n were dealt to nobody.",
        ),
        Hint(
            is_order(beyond_the_end),
            "There are positions past the end of the text. zigzag lists only tokens that exist, and no padding.",
        ),
        Hint(
            labels_are(not_dealt),
            "The inputs were dealt, but the labels were not: they are still in the order of the text. Each label goes "
            "with its input, to the same rank and place.",
        ),
        Hint(labels_are(lambda run, rank: shifted_after_dealing(run, rank, NO_LABEL)), NOT_THE_NEXT),
        Hint(labels_are(lambda run, rank: shifted_after_dealing(run, rank, None)), NOT_THE_NEXT),
        Hint(labels_are(rolled), NOT_THE_NEXT),
        Hint(
            labels_are(the_inputs),
            "The labels are the inputs themselves. The label of position p is token p + 1.",
        ),
        Hint(
            differs_in_length,
            "The parts have different lengths. All ranks call the same collectives with the same shapes: pad the "
            "shorter parts at their end.",
        ),
        Hint(
            with_padding("labels"),
            "Unused places have a label that counts, so the model learns from padding. Their label must be -100.",
        ),
        Hint(
            local_positions,
            "The positions were counted anew on each rank. Rotary embeddings and the causal mask need the position in "
            "the whole text.",
        ),
        Hint(
            with_padding("positions"),
            "Unused places have a position of the text, or one past its end. Their position is -1, which tells "
            "them from tokens.",
        ),
        Hint(with_padding("inputs"), "Unused places have an input other than 0. It must be 0."),
        Hint(
            undone_as(padding_written_last),
            "Only the last position is wrong: unused places have position -1, and as an index -1 means the last place. "
            "Leave unused places out before you put values back.",
        ),
        Hint(
            undone_as(one_behind_the_other),
            "The parts were put one behind the other. Put each value where its position says.",
        ),
        Hint(
            undone_as(gathered),
            "values[:, positions] takes values from these places. Here they have to go there: whole[:, positions] = "
            "values.",
        ),
        Hint(
            undone_as(as_dealt),
            "undo put the values where your own zigzag deals them. Here they were dealt in another way: only the "
            "positions that come with the values say where these belong.",
        ),
        Hint(
            never_filled,
            "undo let values of unused places into the result. Take only places whose position is not -1.",
        ),
    ),
)
