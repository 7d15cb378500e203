"""Seventeen importers, declared as a developer would: with types and limits, and few aliases."""

from collections.abc import Mapping

from rowcall import Boolean, Choice, Date, DateTime, Decimal, Email, Importer, Integer, List, Text, Uuid

_COUNTRY = "[A-Z]{2}"
_THREE_LETTERS = "[A-Z]{3}"


class Users(Importer):
    """People with an account."""

    target = "users"

    id = Uuid()
    email = Email(required=True)
    first_name = Text(max_length=80)
    last_name = Text(required=True, max_length=80)
    role = Choice("admin", "editor", "viewer")
    active = Boolean()
    birth_date = Date()
    phone = Text(max_length=32)
    country = Text(pattern=_COUNTRY)
    created_at = DateTime(aliases=["registered"])


class Articles(Importer):
    """Articles of a paper."""

    target = "articles"

    slug = Text(pattern="[a-z0-9]+(-[a-z0-9]+)*", aliases=["permalink"])
    title = Text(required=True, max_length=200, aliases=["headline"])
    summary = Text()
    body = Text(required=True, aliases=["content"])
    author_email = Email()
    tags = List(aliases=["keywords"])
    status = Choice("draft", "published")
    published_at = DateTime()
    word_count = Integer(min=0)
    language = Text(pattern="[a-z]{2}")


class Orders(Importer):
    """Courier orders."""

    target = "orders"

    order_number = Text(required=True, max_length=20)
    client_reference = Text(max_length=64, aliases=["Ref", "Client ref"])
    order_date = Date()
    service_type = Choice("EXPRESS", "STANDARD", "ECONOMY")
    receiver_name = Text(required=True)
    receiver_address = Text()
    receiver_city = Text()
    receiver_pincode = Text(pattern=r"\d{4,6}")
    declared_value = Decimal(max=100_000)
    cod_amount = Decimal(default=0, aliases=["cash on delivery"])
    quantity = Integer(min=1)


class Parcels(Importer):
    """Parcels on their way."""

    target = "parcels"

    tracking_number = Text(required=True, max_length=30)
    weight = Decimal(min=0)
    length = Decimal(min=0)
    width = Decimal(min=0)
    height = Decimal(min=0)
    sender_name = Text()
    receiver_name = Text(required=True)
    receiver_street = Text()
    receiver_postcode = Text(max_length=10)
    receiver_city = Text()
    ship_date = Date()
    delivered_at = DateTime()
    insured = Boolean()


class Waste(Importer):
    """Loads of waste that were received."""

    target = "waste"

    row_id = Integer()
    received_on = Date(required=True)
    ewc_code = Text(pattern=r"\d\d \d\d \d\d\*?", aliases=["waste code"])
    description_ = Text()
    gross_weight = Decimal()
    tare_weight = Decimal()
    net_weight = Decimal()
    supplier_name = Text()
    supplier_postcode = Text(max_length=10)
    supplier_email = Email()
    carrier_name = Text()
    vehicle_registration = Text(max_length=12)
    weighbridge_ticket = Text()


class Participants(Importer):
    """People who take part in a race."""

    target = "participants"

    bib = Integer(aliases=["start number"])
    first_name = Text(required=True)
    last_name = Text(required=True)
    gender = Choice("M", "F", "X", synonyms={"male": "M", "female": "F"})
    birth_date = Date()
    club = Text()
    email = Email()
    nationality = Text(pattern=_THREE_LETTERS)
    category = Text(max_length=12)
    emergency_phone = Text()
    shirt_size = Choice("XS", "S", "M", "L", "XL", "XXL")
    paid = Boolean()


class Results(Importer):
    """Results of a race."""

    target = "results"

    position = Integer(min=1, aliases=["rank"])
    bib_number = Integer()
    name_ = Text(required=True)
    category = Text()
    finish_time = Text(pattern=r"\d+:\d\d:\d\d(\.\d+)?")
    gap = Text()
    points = Decimal()
    status = Choice("FIN", "DNF", "DNS", "DSQ")
    laps = Integer(min=0)


class Memberships(Importer):
    """Members of a club, by period."""

    target = "memberships"

    member_number = Text(required=True)
    first_name = Text()
    last_name = Text()
    membership_type = Choice("adult", "youth", "family")
    valid_from = Date()
    valid_to = Date()
    fee = Decimal(min=0)
    paid_on = Date()
    iban = Text(pattern="[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}")
    email = Email()
    street = Text()
    postcode = Text(max_length=10)
    city = Text()
    auto_renew = Boolean()


class Products(Importer):
    """What a shop sells."""

    target = "products"

    sku = Text(required=True, max_length=32)
    name_ = Text(required=True)
    description_ = Text()
    price = Decimal(min=0)
    currency = Text(pattern=_THREE_LETTERS)
    stock = Integer()
    ean = Text(pattern=r"\d{8}|\d{13}", aliases=["barcode"])
    weight_kg = Decimal(min=0)
    category = Text()
    brand = Text()
    active = Boolean()
    tax_rate = Decimal(min=0, max=100)


class Invoices(Importer):
    """Invoices to customers."""

    target = "invoices"

    invoice_number = Text(required=True)
    invoice_date = Date(required=True)
    due_date = Date()
    customer_name = Text(aliases=["client name"])
    customer_number = Text()
    vat_id = Text(pattern="[A-Z]{2}[A-Z0-9]{8,12}")
    net_amount = Decimal()
    tax_amount = Decimal()
    gross_amount = Decimal()
    currency = Text(pattern=_THREE_LETTERS)
    paid_on = Date()
    payment_terms = Integer(min=0, max=365)
    purchase_order = Text()


class Employees(Importer):
    """People who work somewhere."""

    target = "employees"

    staff_no = Text(required=True)
    first_name = Text(required=True)
    last_name = Text(required=True)
    hired = Date()
    salary = Decimal()
    department = Text()
    job_title = Text()
    email = Email()
    mobile = Text()
    iban = Text()
    active = Boolean()


class Shipments(Importer):
    """Parcels, measured."""

    target = "shipments"

    tracking = Text(required=True, aliases=["Tracking number"])
    weight_kg = Decimal()
    length_cm = Decimal()
    width_cm = Decimal()
    height_cm = Decimal()
    sender = Text()
    receiver = Text(required=True)
    pickup_date = Date()
    delivery_date = Date()
    cod_amount = Decimal()
    zip = Text()


class Goods(Importer):
    """Articles of a shop."""

    target = "goods"

    sku = Text(required=True, aliases=["Item number"])
    title = Text(required=True, aliases=["Product name"])
    brand = Text()
    price = Decimal(aliases=["Sales price"])
    cost = Decimal(aliases=["Purchase price"])
    stock = Integer(aliases=["Quantity"])
    ean = Text(aliases=["Barcode"])
    color = Text()
    vat = Decimal()
    created = Date()


class Students(Importer):
    """Results of exams."""

    target = "students"

    matric = Text(required=True, aliases=["Matriculation number"])
    full_name = Text(required=True)
    course = Text()
    grade = Decimal()
    credits = Integer()
    exam_date = Date()
    teacher = Text()
    email = Email()
    room = Text()


class Readings(Importer):
    """What sensors have measured."""

    target = "readings"

    id = Text(required=True)
    sensor = Text(required=True)
    at = DateTime(required=True, aliases=["Timestamp"])
    temperature = Decimal()
    humidity = Decimal()
    pressure = Decimal()
    wind_speed = Decimal()
    latitude = Decimal()
    longitude = Decimal()


class Ledger(Importer):
    """Bookings."""

    target = "ledger"

    booked_on = Date(required=True)
    document_no = Text()
    account_no = Text(required=True)
    debit = Decimal()
    credit = Decimal()
    cost_center = Text()
    memo = Text()
    balance = Decimal()
    tax_code = Text()


class Contacts(Importer):
    """Companies and whom to ask for there."""

    target = "contacts"

    company = Text(required=True)
    contact_person = Text()
    street = Text()
    postal_code = Text()
    city = Text()
    country = Text()
    phone = Text()
    fax = Text()
    website = Text()
    email = Email()
    notes = Text()
    birth_date = Date()


IMPORTERS: Mapping[str, type[Importer]] = {
    importer.name: importer
    for importer in (
        *(Users, Articles, Orders, Parcels, Waste),
        *(Participants, Results, Memberships, Products, Invoices),
        *(Employees, Shipments, Goods, Students, Readings, Ledger, Contacts),
    )
}
