SELECT secret FROM issuer
