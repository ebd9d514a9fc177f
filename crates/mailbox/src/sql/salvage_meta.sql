-- What is known of the mesh; the new file is another life of the inbox and keeps its own epoch.
SELECT * FROM meta WHERE k NOT IN ('inbox_epoch', 'inbox_epoch_before')
