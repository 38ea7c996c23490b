"""An authority of certificates for tests: makes certificates, also bad ones, and lists of revoked ones."""

import datetime
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = datetime.timedelta(days=1)


def _now():
    return datetime.datetime.now(datetime.timezone.utc)


def _name(**parts):
    oids = {"C": NameOID.COUNTRY_NAME, "O": NameOID.ORGANIZATION_NAME, "OU": NameOID.ORGANIZATIONAL_UNIT_NAME, "CN": NameOID.COMMON_NAME}
    return x509.Name([x509.NameAttribute(oids[part], text) for part, text in parts.items()])


class Authority:
    """Signs with a key of its own; files go to `folder`."""

    def __init__(self, folder, name="Test Authority"):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.name = _name(O="Nestor tests", CN=name)
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = (
            self._builder(self.name, self.key, _now() - DAY, _now() + 10 * DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(
                x509.KeyUsage(True, False, False, False, False, True, True, False, False), critical=True
            )
            .sign(self.key, hashes.SHA256())
        )
        self.file = folder / "ca.pem"
        self.file.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def _builder(self, subject, key, begin, end):
        return (
            x509.CertificateBuilder()
            .subject_name(subject).issuer_name(self.name).public_key(key.public_key())
            .serial_number(x509.random_serial_number()).not_valid_before(begin).not_valid_after(end)
        )

    def issue(self, file, *, expired=False, password=None, hosts=("localhost",), addresses=("127.0.0.1",), **subject):
        """A file with certificate and key; returns its path and the certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        end = _now() - DAY if expired else _now() + 5 * DAY
        names = [x509.DNSName(host) for host in hosts] + [x509.IPAddress(ipaddress.ip_address(a)) for a in addresses]
        certificate = (
            self._builder(_name(**subject), key, _now() - 2 * DAY, end)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        protection = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
        path = self.folder / file
        path.write_bytes(
            certificate.public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection)
        )
        return path, certificate

    def revoke(self, file, *certificates):
        """A file with the list of revoked certificates."""
        builder = x509.CertificateRevocationListBuilder().issuer_name(self.name).last_update(_now() - DAY).next_update(_now() + DAY)
        for certificate in certificates:
            revoked = x509.RevokedCertificateBuilder().serial_number(certificate.serial_number).revocation_date(_now() - DAY)
            builder = builder.add_revoked_certificate(revoked.build())
        builder = builder.add_extension(x509.CRLNumber(1), critical=False)
        path = self.folder / file
        path.write_bytes(builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        return path
