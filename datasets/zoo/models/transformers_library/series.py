"""Forecasting of time series."""

from __future__ import annotations

from ..workload import Input, ids, reals
from .architecture import Architecture, offer
from .rows import depths, stated

BOTH = ("encoder_layers", "decoder_layers")
#: Lags of up to a week before the 48 hours that are read.
PAST = 48 + 7


def future(batch: int, steps: int) -> dict[str, Input]:
    """Past and future of one series with two features of time."""
    return {
        "past_values": reals(batch, PAST),
        "past_time_features": reals(batch, PAST, 2),
        "past_observed_mask": reals(batch, PAST),
        "future_values": reals(batch, steps),
        "future_time_features": reals(batch, steps, 2),
    }


PROBABILISTIC = {
    "prediction_length": 24,
    "context_length": 48,
    "num_time_features": 2,
    "lags_sequence": [1, 2, 3, 4, 5, 6, 7],
    "d_model": 64,
}

ROWS = (
    Architecture(
        "time-series-transformer",
        "TimeSeriesTransformerForPrediction",
        'Vaswani et al. 2017, "Attention is all you need", for probabilistic forecasts of 24 hours: Student\'s t.',
        inputs=future(64, 24),
        loss=stated,
        sizes=depths(*BOTH, train=(2, 6)),
        settings=PROBABILISTIC,
        fixed={"use_cache": False},
        optimizer="adam",
    ),
    Architecture(
        "informer",
        "InformerForPrediction",
        'Zhou et al. 2021, "Informer: beyond efficient transformer for long sequence time-series forecasting".',
        inputs=future(64, 24),
        loss=stated,
        sizes=depths(*BOTH, train=(2, 4)),
        settings=PROBABILISTIC,
        fixed={"use_cache": False},
    ),
    Architecture(
        "patchtst",
        "PatchTSTForPrediction",
        'Nie et al. 2023, "A time series is worth 64 words: long-term forecasting with transformers".',
        inputs={"past_values": reals(32, 336, 7)},
        targets={"future_values": reals(32, 96, 7)},
        sizes=depths("num_hidden_layers", train=(3, 8), infer=(6,)),
        settings={
            "num_input_channels": 7,
            "context_length": 336,
            "patch_length": 16,
            "patch_stride": 8,
            "prediction_length": 96,
            "loss": "mse",
        },
    ),
    Architecture(
        "patchtsmixer",
        "PatchTSMixerForPrediction",
        'Ekambaram et al. 2023, "TSMixer: lightweight MLP-Mixer model for multivariate time series forecasting".',
        inputs={"past_values": reals(32, 512, 7)},
        targets={"future_values": reals(32, 96, 7)},
        sizes=depths("num_layers", train=(3, 8), infer=(6,)),
        settings={
            "num_input_channels": 7,
            "context_length": 512,
            "patch_length": 16,
            "patch_stride": 16,
            "prediction_length": 96,
            "mode": "mix_channel",
        },
    ),
    Architecture(
        "timesfm",
        "TimesFmModel",
        'Das et al. 2024, "A decoder-only foundation model for time-series forecasting": the trunk.',
        inputs={
            "past_values": reals(4, 512),
            "past_values_padding": reals(4, 512),
            "freq": ids(3, 4, 1),
        },
        sizes=depths("num_hidden_layers", infer=(10, 20)),
    ),
)

offer(__name__, ROWS)
