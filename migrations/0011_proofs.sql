-- The hash in the last record by which an owner proved a host, and when the census first saw it.
-- Its secret works for a day from then on and never again.
ALTER TABLE hosts ADD COLUMN proof BLOB CHECK (length(proof) = 32);
ALTER TABLE hosts ADD COLUMN proof_seen INTEGER;
