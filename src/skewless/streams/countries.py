"""Countries: 204 country names, uniform except that one of them takes a fixed share.

The synthetic streams of the dynamic key grouping paper, in which the skew is 0, 10 … 100 %; its
half-skewed stream has a skew of 80 % in one half and none in the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from skewless.compiled import compiled
from skewless.errors import SkewlessError
from skewless.hashing import U64
from skewless.hashing import identities as hashed
from skewless.streams.synthetic import Synthetic, first_bits, next_bits, unit

_NAMES = """
Afghanistan|Albania|Algeria|Andorra|Angola|Antigua and Barbuda|Argentina|Armenia|Australia
Austria|Azerbaijan|Bahamas|Bahrain|Bangladesh|Barbados|Belarus|Belgium|Belize|Benin|Bermuda|Bhutan
Bolivia|Bosnia and Herzegovina|Botswana|Brazil|Brunei|Bulgaria|Burkina Faso|Burundi|Cambodia
Cameroon|Canada|Cape Verde|Central African Republic|Chad|Chile|China|Colombia|Comoros|Congo
Cook Islands|Costa Rica|Croatia|Cuba|Cyprus|Czechia|Democratic Republic of the Congo|Denmark
Djibouti|Dominica|Dominican Republic|East Timor|Ecuador|Egypt|El Salvador|Equatorial Guinea|Eritrea
Estonia|Eswatini|Ethiopia|Faroe Islands|Fiji|Finland|France|Gabon|Gambia|Georgia|Germany|Ghana
Greece|Greenland|Grenada|Guatemala|Guinea|Guinea-Bissau|Guyana|Haiti|Honduras|Hong Kong|Hungary
Iceland|India|Indonesia|Iran|Iraq|Ireland|Israel|Italy|Ivory Coast|Jamaica|Japan|Jordan|Kazakhstan
Kenya|Kiribati|Kosovo|Kuwait|Kyrgyzstan|Laos|Latvia|Lebanon|Lesotho|Liberia|Libya|Liechtenstein
Lithuania|Luxembourg|Madagascar|Malawi|Malaysia|Maldives|Mali|Malta|Marshall Islands|Mauritania
Mauritius|Mexico|Micronesia|Moldova|Monaco|Mongolia|Montenegro|Morocco|Mozambique|Myanmar|Namibia
Nauru|Nepal|Netherlands|New Zealand|Nicaragua|Niger|Nigeria|Niue|North Korea|North Macedonia|Norway
Oman|Pakistan|Palau|Palestine|Panama|Papua New Guinea|Paraguay|Peru|Philippines|Poland|Portugal
Puerto Rico|Qatar|Romania|Russia|Rwanda|Saint Kitts and Nevis|Saint Lucia
Saint Vincent and the Grenadines|Samoa|San Marino|Sao Tome and Principe|Saudi Arabia|Senegal|Serbia
Seychelles|Sierra Leone|Singapore|Slovakia|Slovenia|Solomon Islands|Somalia|South Africa
South Korea|South Sudan|Spain|Sri Lanka|Sudan|Suriname|Sweden|Switzerland|Syria|Taiwan|Tajikistan
Tanzania|Thailand|Togo|Tonga|Trinidad and Tobago|Tunisia|Turkey|Turkmenistan|Tuvalu|Uganda|Ukraine
United Arab Emirates|United Kingdom|United States|Uruguay|Uzbekistan|Vanuatu|Vatican City|Venezuela
Vietnam|Yemen|Zambia|Zimbabwe
"""
COUNTRIES: tuple[str, ...] = tuple(_NAMES.strip().replace("\n", "|").split("|"))
HOT = COUNTRIES.index("United States")


@compiled
def _draw(
    names: U64,
    hot: int,
    share: float,
    skewed: tuple[int, int],
    origin: np.uint64,
    first: int,
    keys: U64,
) -> None:
    for i in range(keys.size):
        bits = first_bits(origin, first + i)
        inside = skewed[0] <= first + i < skewed[1]
        if unit(bits) <= (share if inside else 1.0 / names.size):
            keys[i] = names[hot]
        else:
            cold = np.int64((1.0 - unit(next_bits(bits))) * (names.size - 1))
            keys[i] = names[cold + np.int64(cold >= hot)]


@dataclass(frozen=True)
class Countries(Synthetic):
    """Country names with one hot key ('United States'); all others are equally likely.

    skew: the hot key's share in per cent; below the uniform share (100/204) all are equally likely.
    messages: length of the stream.
    half: the half of the stream in which alone the skew holds; none: it holds throughout.
    """

    skew: float
    messages: int
    half: Literal["none", "first", "second"] = "none"

    name: ClassVar[str] = "countries"

    def __post_init__(self) -> None:
        if not 0 <= self.skew <= 100:
            raise SkewlessError(f"countries:skew is a per cent from 0 to 100, not {self.skew}.")
        if self.half not in ("none", "first", "second"):
            raise SkewlessError(f"countries:half is none, first or second, not '{self.half}'.")
        self.check_at_least(1, "messages")

    def keys_of(self, identities: U64) -> pa.Array:
        """The names with these identities."""
        names = pa.array(COUNTRIES, pa.string())
        known = hashed(names)
        order = np.argsort(known)
        return names.take(pa.array(order[np.searchsorted(known, identities, sorter=order)]))

    def drawer(self) -> Any:
        """Names, as identities of strings."""
        names = hashed(list(COUNTRIES))
        share = max(self.skew / 100, 1 / len(COUNTRIES))
        middle = self.messages // 2
        skewed = {
            "none": (0, self.messages),
            "first": (0, middle),
            "second": (middle, self.messages),
        }[self.half]
        return lambda origin, first, keys: _draw(names, HOT, share, skewed, origin, first, keys)
