"""Who is who: certificates, and the authority that issues and revokes them."""
