-- expands
-- What an event reported as paid that settled asks the service about: minor units, 0 if they are not readable, and then what
-- stood in their place. For people and for sums of attention; nothing is counted by it.
ALTER TABLE inbox ADD COLUMN reported_minor INTEGER;
ALTER TABLE inbox ADD COLUMN reported_currency TEXT;
ALTER TABLE inbox ADD COLUMN reported_text TEXT;
