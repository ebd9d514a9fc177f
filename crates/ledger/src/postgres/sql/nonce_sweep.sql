DELETE FROM nonce WHERE until <= $1
