-- What stood there when the write was asked, where that passed here.
ALTER TABLE envelope_body ADD COLUMN base BLOB;
