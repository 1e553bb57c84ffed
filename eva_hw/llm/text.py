"""From text to tokens and back: the tokenizer of a model folder, chat prompts, and text that grows."""

from ..errors import InputError
from . import smollm2
from .gguf_file import GgufModel
from .packages import need
from .tokenizer import load_tokenizer

__all__ = ["Text", "load_text"]

#: How chats are written: (token that tells the kind, begin of a message, end of its role, end of the message).
_CHATS = (("<|im_start|>", "<|im_start|>", "\n", "<|im_end|>\n"),
          ("<|start_header_id|>", "<|start_header_id|>", "<|end_header_id|>\n\n", "<|eot_id|>"))
#: Tokens that end a reply, where a vocabulary has them.
_ENDS = ("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>", "</s>")


class Text:
    """A model's tokenizer.

    Parameters
    ----------
    tokenizer : tokenizers.Tokenizer
    end_tokens : iterable of int
        Tokens that end a text, beside those known by name.

    Attributes
    ----------
    end_tokens : set[int]
    """

    def __init__(self, tokenizer, end_tokens=()):
        self._tokenizer = tokenizer
        known = (tokenizer.token_to_id(token) for token in _ENDS)
        self.end_tokens = {*end_tokens, *(i for i in known if i is not None)}

    def encode(self, prompt):
        """Tokens of a text, with what the tokenizer puts before it.

        Raises
        ------
        InputError
            If there are none.
        """
        if not (ids := self._tokenizer.encode(prompt).ids):
            raise InputError("must not be empty", "prompt")
        return ids

    def chat(self, prompt, system=None):
        """Tokens of a chat: perhaps a system message, the user's message, and the beginning of the reply.

        Raises
        ------
        InputError
            If the vocabulary has no marks for chats that are known.
        """
        for mark, begin, role_end, end in _CHATS:
            if self._tokenizer.token_to_id(mark) is not None:
                messages = [("system", system)] if system else []
                text = "".join(f"{begin}{role}{role_end}{message}{end}" for role, message in
                               [*messages, ("user", prompt)])
                return self.encode(f"{text}{begin}assistant{role_end}")
        raise InputError(f"the tokenizer must have {' or '.join(mark for mark, *_ in _CHATS)} for a chat; "
                         "leave out --chat", "prompt")

    def decode(self, ids):
        """The text of ``ids``, without special tokens."""
        return self._tokenizer.decode(ids)

    def stream(self, ids):
        """Pieces of text as the tokens of the iterator ``ids`` come; a character of several tokens comes whole."""
        held, shown = [], 0
        for token in ids:
            held.append(token)
            text = self.decode(held)
            if not text.endswith("\ufffd"):
                yield text[shown:]
                shown = len(text)
        if held:
            yield self.decode(held)[shown:]


def load_text(weights):
    """The :class:`Text` of a model folder: its ``tokenizer.json``, else SmolLM2's, if the vocabulary is as large.

    Parameters
    ----------
    weights : FolderWeights

    Raises
    ------
    InputError
        If there is neither, or the file cannot be read.
    """
    path = weights.folder / "tokenizer.json"
    if path.exists():
        try:
            tokenizer = need("tokenizers").Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises nothing more special
            raise InputError(f"is not a readable tokenizer: {error}", str(path)) from None
    else:
        model = GgufModel(smollm2.find())
        tokenizer = load_tokenizer(model)
        if tokenizer.get_vocab_size() != weights.settings.vocabulary:
            raise InputError(f"there is no such file, and the vocabulary of {weights.settings.vocabulary} tokens is "
                             f"not that of SmolLM2, {tokenizer.get_vocab_size()}", str(path))
    return Text(tokenizer, weights.settings.end_tokens)
