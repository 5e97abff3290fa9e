package Required;

# Code that runs when the file is required, in a sub of another file.
main::burn();
1;
