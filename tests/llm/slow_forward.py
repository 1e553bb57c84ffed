"""The forward pass of a model folder, one number at a time, in Python floats."""

import cmath
import math


def norm(x, weight, epsilon):
    size = math.sqrt(sum(v * v for v in x) / len(x) + epsilon)
    return [v / size * float(w) for v, w in zip(x, weight)]


def rotated(head, position, rates):
    """Pairs (i, i + half) as complex numbers, turned by position times the pair's rate."""
    half = len(head) // 2
    turned = [complex(head[i], head[i + half]) * cmath.exp(1j * position * rates[i]) for i in range(half)]
    return [t.real for t in turned] + [t.imag for t in turned]


def llama3_rates(rates, factor, low, high, original):
    """Rates as the LLaMA 3 models scale them, by wavelength."""
    made = []
    for rate in rates:
        length = 2 * math.pi / rate
        if length < original / high:
            made.append(rate)
        elif length > original / low:
            made.append(rate / factor)
        else:
            smooth = (original / length - low) / (high - low)
            made.append((1 - smooth) * rate / factor + smooth * rate)
    return made


def slow_logits(weights, tokens, rates=None):
    """Scores of every position, of a FolderWeights' dequantized layers."""
    s = weights.settings
    rates = rates or [s.rope_base ** (-2 * i / s.head_width) for i in range(s.head_width // 2)]

    def linear(name, x):
        weight, bias = weights.dequantized(name)
        y = [sum(float(w) * v for w, v in zip(row, x)) for row in weight]
        return y if bias is None else [a + float(b) for a, b in zip(y, bias)]

    def split(x):
        return [x[i:i + s.head_width] for i in range(0, len(x), s.head_width)]

    states = [[float(v) for v in row] for row in weights.embed(tokens)]
    for block in range(s.blocks):
        prefix = f"model.layers.{block}"
        normal = [norm(x, weights.tensor(f"{prefix}.input_layernorm.weight"), s.norm_epsilon) for x in states]
        query, key, value = ([split(linear(f"{prefix}.self_attn.{n}_proj", x)) for x in normal] for n in "qkv")
        query, key = ([[rotated(h, t, rates) for h in heads] for t, heads in enumerate(part)] for part in (query, key))
        for t, x in enumerate(states):
            mixed = []
            for h in range(s.heads):
                group = h * s.kv_heads // s.heads
                scores = [math.exp(sum(a * b for a, b in zip(query[t][h], key[u][group])) / math.sqrt(s.head_width))
                          for u in range(t + 1)]
                mixed += [sum(w * value[u][group][i] for u, w in enumerate(scores)) / sum(scores)
                          for i in range(s.head_width)]
            states[t] = [a + b for a, b in zip(x, linear(f"{prefix}.self_attn.o_proj", mixed))]
        for t, x in enumerate(states):
            inner = norm(x, weights.tensor(f"{prefix}.post_attention_layernorm.weight"), s.norm_epsilon)
            gate, up = (linear(f"{prefix}.mlp.{n}_proj", inner) for n in ("gate", "up"))
            product = [g / (1 + math.exp(-g)) * u for g, u in zip(gate, up)]
            states[t] = [a + b for a, b in zip(x, linear(f"{prefix}.mlp.down_proj", product))]
    states = [norm(x, weights.tensor("model.norm.weight"), s.norm_epsilon) for x in states]
    if weights.has_layer("lm_head"):
        return [linear("lm_head", x) for x in states]
    return [[sum(float(w) * v for w, v in zip(row, x)) for row in weights.head] for x in states]
