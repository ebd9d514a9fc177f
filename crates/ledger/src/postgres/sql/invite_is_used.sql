SELECT used_at IS NOT NULL FROM invite WHERE hash = $1
