"""What users import: `from galatea.client import Client, AsyncClient`. It knows REST, and no part of the platform."""
