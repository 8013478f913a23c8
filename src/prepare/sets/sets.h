// One function a data set; each is in the file of that name.
#pragma once

#include "prepare/catalogue.h"

namespace assay {

DataSet fashion_images_set();
DataSet fashion_mnist_set();
DataSet janeausten_set();
DataSet mnist_set();
DataSet movielens_set();
DataSet sotu_set();
DataSet spam_assassin_set();
DataSet text_images_set();

}  // namespace assay
