"""The tokenizer that a GGUF file describes."""

from ..errors import InputError
from .packages import need

__all__ = ["load_tokenizer"]

#: tokenizer.ggml.token_type of tokens that stand for themselves and never come out of text merges.
_CONTROL = 3


def load_tokenizer(model):
    """Byte-level BPE from the file's own vocabulary and merges.

    Parameters
    ----------
    model : GgufModel

    Returns
    -------
    tokenizers.Tokenizer
        ``encode(text).ids`` and ``decode(ids)``; no token is added at the beginning.

    Raises
    ------
    InputError
        If the file's tokenizer is of another kind; names what it is.
    """
    kind, pre = model.field("tokenizer.ggml.model"), model.field("tokenizer.ggml.pre")
    if (kind, pre) != ("gpt2", "smollm"):
        raise InputError(f"tokenizer {kind!r} with pre-tokenizer {pre!r} must be 'gpt2' with 'smollm'", str(model.path))
    hub = need("tokenizers")
    decoders, models, splitters = hub.decoders, hub.models, hub.pre_tokenizers
    tokens = model.field("tokenizer.ggml.tokens")
    merges = [tuple(merge.split(" ", 1)) for merge in model.field("tokenizer.ggml.merges")]
    tokenizer = hub.Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = splitters.Sequence([
        splitters.Digits(individual_digits=True), splitters.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    types = model.field("tokenizer.ggml.token_type")
    tokenizer.add_special_tokens([hub.AddedToken(token, special=True, normalized=False)
                                  for token, type_ in zip(tokens, types) if type_ == _CONTROL])
    return tokenizer
