SELECT number, ts_us FROM message WHERE conversation = $1 ORDER BY seq LIMIT $2
