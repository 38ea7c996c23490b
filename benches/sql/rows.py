"""Rows of TPC-H's eight tables, by the rules of its specification (clause 4.2) with a generator of our own: the same for the same scale.

What differs from the specification's own program: texts are made of fewer words, and numbers come from Python's generator. All queries of
`queries.py` have rows to find.
"""

import datetime
import random

REGIONS = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"]
NATIONS = [
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0), ("FRANCE", 3), ("GERMANY", 3),
    ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4), ("KENYA", 0), ("MOROCCO", 0), ("MOZAMBIQUE", 0),
    ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3), ("SAUDI ARABIA", 4), ("VIETNAM", 2), ("RUSSIA", 3), ("UNITED KINGDOM", 3), ("UNITED STATES", 1),
]
SEGMENTS = ["AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD"]
PRIORITIES = ["1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW"]
INSTRUCTIONS = ["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"]
MODES = ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"]
TYPES = (["STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO"], ["ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED"],
         ["TIN", "NICKEL", "BRASS", "STEEL", "COPPER"])
CONTAINERS = (["SM", "LG", "MED", "JUMBO", "WRAP"], ["CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM"])
COLOURS = ("almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished chartreuse chiffon chocolate coral"
           " cornflower cream cyan dark deep dim dodger drab firebrick floral forest frosted gainsboro ghost goldenrod green grey honeydew hot"
           " indian ivory khaki lace lavender lawn lemon light lime linen magenta maroon medium metallic midnight mint misty moccasin navajo"
           " navy olive orange orchid pale papaya peach peru pink plum powder puff purple red rose rosy royal saddle salmon sandy seashell"
           " sienna sky slate smoke snow spring steel tan thistle tomato turquoise violet wheat white yellow").split()
WORDS = ("furiously quickly carefully blithely final regular express special pending ironic even bold silent deposits requests accounts packages"
         " instructions foxes theodolites pinto beans sleep wake nag haggle detect along above across the slyly among unusual customer").split()

FIRST, LAST, TODAY = datetime.date(1992, 1, 1), datetime.date(1998, 8, 2), datetime.date(1995, 6, 17)
DAY = datetime.timedelta(days=1)

TABLES = {
    "region": "r_regionkey int primary key, r_name text not null, r_comment text",
    "nation": "n_nationkey int primary key, n_name text not null, n_regionkey int not null, n_comment text",
    "supplier": "s_suppkey int primary key, s_name text not null, s_address text not null, s_nationkey int not null, s_phone text not null,"
                " s_acctbal numeric(15,2) not null, s_comment text not null",
    "part": "p_partkey int primary key, p_name text not null, p_mfgr text not null, p_brand text not null, p_type text not null,"
            " p_size int not null, p_container text not null, p_retailprice numeric(15,2) not null, p_comment text not null",
    "partsupp": "ps_partkey int not null, ps_suppkey int not null, ps_availqty int not null, ps_supplycost numeric(15,2) not null,"
                " ps_comment text not null, primary key (ps_partkey, ps_suppkey)",
    "customer": "c_custkey int primary key, c_name text not null, c_address text not null, c_nationkey int not null, c_phone text not null,"
                " c_acctbal numeric(15,2) not null, c_mktsegment text not null, c_comment text not null",
    "orders": "o_orderkey int primary key, o_custkey int not null, o_orderstatus text not null, o_totalprice numeric(15,2) not null,"
              " o_orderdate date not null, o_orderpriority text not null, o_clerk text not null, o_shippriority int not null,"
              " o_comment text not null",
    "lineitem": "l_orderkey int not null, l_partkey int not null, l_suppkey int not null, l_linenumber int not null,"
                " l_quantity numeric(15,2) not null, l_extendedprice numeric(15,2) not null, l_discount numeric(15,2) not null,"
                " l_tax numeric(15,2) not null, l_returnflag text not null, l_linestatus text not null, l_shipdate date not null,"
                " l_commitdate date not null, l_receiptdate date not null, l_shipinstruct text not null, l_shipmode text not null,"
                " l_comment text not null, primary key (l_orderkey, l_linenumber)",
}
# Of the foreign keys, as those who run the queries usually have them.
INDEXES = ["supplier (s_nationkey)", "partsupp (ps_suppkey)", "customer (c_nationkey)", "orders (o_custkey)", "orders (o_orderdate)",
           "lineitem (l_partkey, l_suppkey)", "lineitem (l_suppkey)", "lineitem (l_shipdate)"]


def money(cents):
    return f"{cents // 100}.{cents % 100:02}" if cents >= 0 else f"-{-cents // 100}.{-cents % 100:02}"


def phone(dice, nation):
    return f"{nation + 10}-{dice.randrange(100, 1000)}-{dice.randrange(100, 1000)}-{dice.randrange(1000, 10000)}"


def words(dice, least, most):
    return " ".join(dice.choice(WORDS) for _ in range(dice.randrange(least, most)))


def price(part):
    return 90000 + part // 10 % 20001 + 100 * (part % 1000)


def supplier_of(part, nth, suppliers):
    return (part + nth * (suppliers // 4 + (part - 1) // suppliers)) % suppliers + 1


def sizes(scale):
    """How many suppliers, parts, customers and orders there are."""
    return (max(int(scale * n), least) for n, least in [(10_000, 10), (200_000, 200), (150_000, 150), (1_500_000, 1500)])


def tables(scale):
    """Each table's name with an iterator over its rows, tuples of texts and integers, in an order in which keys exist before they are referred to."""
    suppliers, parts, customers, orders = sizes(scale)
    yield "region", ((i, name, "") for i, name in enumerate(REGIONS))
    yield "nation", ((i, name, region, "") for i, (name, region) in enumerate(NATIONS))
    yield "supplier", make_suppliers(suppliers)
    yield "part", make_parts(parts)
    yield "partsupp", make_supplies(parts, suppliers)
    yield "customer", make_customers(customers)
    yield "orders", (order for order, _ in make_orders(orders, customers, parts, suppliers))
    yield "lineitem", (line for _, lines in make_orders(orders, customers, parts, suppliers) for line in lines)


def orders(scale):
    """Each order with its lines, those that `tables` has."""
    suppliers, parts, customers, count = sizes(scale)
    return make_orders(count, customers, parts, suppliers)


def make_suppliers(count):
    dice = random.Random("suppliers")
    for key in range(1, count + 1):
        nation = dice.randrange(25)
        comment = words(dice, 6, 15)
        if key % 200 == 7:
            comment += " Customer slow Complaints"
        yield (key, f"Supplier#{key:09}", words(dice, 2, 4), nation, phone(dice, nation), money(dice.randrange(-99999, 1000000)), comment)


def make_parts(count):
    dice = random.Random("parts")
    for key in range(1, count + 1):
        maker = dice.randrange(1, 6)
        yield (key, " ".join(dice.sample(COLOURS, 5)), f"Manufacturer#{maker}", f"Brand#{maker}{dice.randrange(1, 6)}",
               " ".join(dice.choice(part) for part in TYPES), dice.randrange(1, 51), " ".join(dice.choice(part) for part in CONTAINERS),
               money(price(key)), words(dice, 1, 4))


def make_supplies(parts, suppliers):
    dice = random.Random("supplies")
    for part in range(1, parts + 1):
        for nth in range(4):
            yield (part, supplier_of(part, nth, suppliers), dice.randrange(1, 10000), money(dice.randrange(100, 100001)), words(dice, 8, 30))


def make_customers(count):
    dice = random.Random("customers")
    for key in range(1, count + 1):
        nation = dice.randrange(25)
        yield (key, f"Customer#{key:09}", words(dice, 2, 4), nation, phone(dice, nation), money(dice.randrange(-99999, 1000000)),
               dice.choice(SEGMENTS), words(dice, 6, 16))


def make_orders(count, customers, parts, suppliers):
    """Pairs of an order and its lines."""
    dice = random.Random("orders")
    days = (LAST - FIRST).days - 151
    for nth in range(count):
        key = nth // 8 * 32 + nth % 8 + 1
        # Every third customer never orders.
        customer = dice.randrange(1, customers + 1)
        while customer % 3 == 0:
            customer = dice.randrange(1, customers + 1)
        date = FIRST + DAY * dice.randrange(days)
        lines, total, open_lines = [], 0, 0
        for number in range(1, dice.randrange(1, 8) + 1):
            part = dice.randrange(1, parts + 1)
            quantity, discount, tax = dice.randrange(1, 51), dice.randrange(0, 11), dice.randrange(0, 9)
            extended = quantity * price(part)
            shipped = date + DAY * dice.randrange(1, 122)
            received = shipped + DAY * dice.randrange(1, 31)
            is_open = shipped > TODAY
            open_lines += is_open
            total += extended * (100 + tax) * (100 - discount) // 10000
            lines.append((key, part, supplier_of(part, dice.randrange(4), suppliers), number, quantity, money(extended), money(discount),
                          money(tax), dice.choice("RA") if received <= TODAY else "N", "O" if is_open else "F", str(shipped),
                          str(date + DAY * dice.randrange(30, 91)), str(received), dice.choice(INSTRUCTIONS), dice.choice(MODES),
                          words(dice, 2, 6)))
        status = "F" if not open_lines else "O" if open_lines == len(lines) else "P"
        comment = words(dice, 4, 12)
        if dice.randrange(80) == 0:
            comment += " special handling of requests"
        yield (key, customer, status, money(total), str(date), dice.choice(PRIORITIES), f"Clerk#{dice.randrange(1, 1001):09}", 0, comment), lines
