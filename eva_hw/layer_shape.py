"""The sizes of a vector-quantized layer, however it is held."""

__all__ = ["LayerShape"]


class LayerShape:
    """Sizes of anything with ``codes`` [N, V, C] and ``codebooks`` [..., d]."""

    @property
    def outputs(self):
        """N."""
        return self.codes.shape[0]

    @property
    def inputs(self):
        """K = V * d."""
        return self.vectors * self.d

    @property
    def vectors(self):
        """V, vectors of d inputs."""
        return self.codes.shape[1]

    @property
    def codebook_count(self):
        """C."""
        return self.codes.shape[2]

    @property
    def d(self):
        """Inputs of one vector."""
        return self.codebooks.shape[-1]
