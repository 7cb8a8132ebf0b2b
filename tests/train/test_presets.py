import pytest

from ensize.train.networks import parameters
from ensize.train.studies import PRESETS, Study

# The width of the standard network, and how many networks there are of it.
STANDARD = {"vgg16": (64, 64), "wideresnet28": (160, 12)}


def test_the_papers_eight_studies_are_there():
    assert len(PRESETS) == len(set(PRESETS)) == 8


@pytest.mark.parametrize("name", PRESETS)
def test_there_are_n_or_8_standard_sizes_of_networks(name):
    study = Study.preset(name)
    width, least = STANDARD[study.family]
    of = {"shape": (3, 32, 32), "classes": int(study.dataset.removeprefix("cifar"))}
    standard = parameters(study.family, width, **of)
    for each in study.widths:
        size = parameters(study.family, each, **of)
        l = len(study.seeds(each))
        assert l >= least
        assert l == least or 8 * standard <= l * size < 8 * standard + size
    assert len(study.seeds(width)) == least


@pytest.mark.parametrize("name", PRESETS)
def test_they_are_trained_as_the_paper_says(name):
    study = Study.preset(name)
    assert name == f"paper-{study.dataset}-{study.family}" + (
        "-unregularized" if name.endswith("-unregularized") else ""
    )
    for width in study.widths:
        recipe = study.recipe_at(width)
        assert (recipe.epochs, recipe.batch, recipe.momentum) == (200, 128, 0.9)
        rate = 0.05 if study.family == "vgg16" else 0.1
        if name.endswith("-unregularized"):
            assert recipe.learning_rate == pytest.approx(rate / 10)
            assert (recipe.weight_decay, recipe.dropout) == (0, 0)
            assert not recipe.augment
        else:
            assert recipe.augment
            assert recipe.learning_rate == (0.005 if width == 6 else rate)


@pytest.mark.parametrize(
    ("name", "width", "values"),
    [
        ("paper-cifar10-vgg16", 6, (1e-3, 0, 0.005)),
        ("paper-cifar10-vgg16", 11, (1e-3, 0, 0.05)),
        ("paper-cifar10-vgg16", 64, (3e-4, 0.25, 0.05)),
        ("paper-cifar10-vgg16", 181, (3e-4, 0, 0.05)),
        ("paper-cifar100-vgg16", 6, (1e-3, 0.25, 0.005)),
        ("paper-cifar100-vgg16", 16, (1e-3, 0, 0.05)),
        ("paper-cifar100-vgg16", 64, (1e-3, 0.5, 0.05)),
        ("paper-cifar100-vgg16", 128, (3e-4, 0.5, 0.05)),
        ("paper-cifar100-wideresnet28", 56, (3e-4, 0, 0.1)),
        ("paper-cifar10-wideresnet28", 57, (3e-4, 0, 0.1)),
    ],
)
def test_chosen_values_are_those_of_the_authors(name, width, values):
    recipe = Study.preset(name).recipe_at(width)
    chosen = recipe.weight_decay, recipe.dropout, recipe.learning_rate
    assert chosen == pytest.approx(values)
